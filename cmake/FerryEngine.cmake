# ferry_engine: everything that needs no Python, which the extension and the native tests share.

set(ferry_csrc "${CMAKE_CURRENT_LIST_DIR}/../csrc")
include(CheckCXXCompilerFlag)

add_library(ferry_engine STATIC
  ${ferry_csrc}/core/dtype.cpp
  ${ferry_csrc}/core/layout.cpp
  ${ferry_csrc}/core/tensor_ref.cpp
  ${ferry_csrc}/host/block_cast.cpp
  ${ferry_csrc}/host/cache_size.cpp
  ${ferry_csrc}/host/carry.cpp
  ${ferry_csrc}/host/chunk_cast.cpp
  ${ferry_csrc}/host/copy.cpp
  ${ferry_csrc}/host/element_io.cpp
  ${ferry_csrc}/host/image.cpp
  ${ferry_csrc}/host/image_row.cpp
  ${ferry_csrc}/host/kernels/kernels.cpp
  ${ferry_csrc}/host/logical_shape.cpp
  ${ferry_csrc}/host/openmp_team.cpp
  ${ferry_csrc}/host/packed_runs.cpp
  ${ferry_csrc}/host/panels.cpp
  ${ferry_csrc}/host/parallel.cpp
  ${ferry_csrc}/host/pool/aligned_memory.cpp
  ${ferry_csrc}/host/pool/block.cpp
  ${ferry_csrc}/host/pool/host_pool.cpp
  ${ferry_csrc}/host/pool/memory_limit.cpp
  ${ferry_csrc}/host/pool/pool.cpp
  ${ferry_csrc}/host/raw_copy.cpp
  ${ferry_csrc}/host/row_pass.cpp
  ${ferry_csrc}/host/scan.cpp
  ${ferry_csrc}/host/value_check.cpp
  ${ferry_csrc}/host/scan_question.cpp
  ${ferry_csrc}/host/stack.cpp
  ${ferry_csrc}/transfer/casting.cpp
  ${ferry_csrc}/transfer/cause.cpp
  ${ferry_csrc}/transfer/plan.cpp
)
target_include_directories(ferry_engine PUBLIC ${ferry_csrc})
# A fused multiply-add rounds once where two operations round twice: results would differ between processors and levels.
# Where every processor has one, as on 64-bit ARM, compilers fuse unless told not to.
set(ferry_one_rounding -ffp-contract=off)
target_compile_options(ferry_engine PUBLIC ${ferry_one_rounding})
find_package(Threads REQUIRED)
target_link_libraries(ferry_engine PUBLIC Threads::Threads PRIVATE ferry_options)

# The kernels once for each processor level, each in a namespace of its own; kernels.cpp chooses one at run time.
function(ferry_kernel_level level)
  add_library(ferry_kernels_${level} OBJECT
    ${ferry_csrc}/host/kernels/cast.cpp
    ${ferry_csrc}/host/kernels/cast_complex.cpp
    ${ferry_csrc}/host/kernels/cast_float.cpp
    ${ferry_csrc}/host/kernels/cast_integer.cpp
    ${ferry_csrc}/host/kernels/cast_small.cpp
    ${ferry_csrc}/host/kernels/compare.cpp
    ${ferry_csrc}/host/kernels/flip.cpp
    ${ferry_csrc}/host/kernels/image.cpp
    ${ferry_csrc}/host/kernels/move.cpp
    ${ferry_csrc}/host/kernels/rows.cpp
    ${ferry_csrc}/host/kernels/scan.cpp
    ${ferry_csrc}/host/kernels/stream.cpp
    ${ferry_csrc}/host/kernels/table.cpp
    ${ferry_csrc}/host/kernels/transpose.cpp
  )
  target_include_directories(ferry_kernels_${level} PRIVATE ${ferry_csrc})
  target_compile_definitions(ferry_kernels_${level} PRIVATE FERRY_LEVEL=${level})
  # Nobody asks for the exceptions that arithmetic on lanes without a result might raise.
  target_compile_options(ferry_kernels_${level} PRIVATE ${ARGN} ${ferry_one_rounding} -fno-trapping-math
    "$<$<CONFIG:Release>:-O3>")
  target_link_libraries(ferry_kernels_${level} PRIVATE ferry_options)
  target_link_libraries(ferry_engine PRIVATE $<TARGET_OBJECTS:ferry_kernels_${level}>)
endfunction()

ferry_kernel_level(portable)
check_cxx_compiler_flag(-march=x86-64-v4 FERRY_X86_LEVELS)
if(FERRY_X86_LEVELS)
  ferry_kernel_level(avx2 -march=x86-64-v3)
  ferry_kernel_level(avx512 -march=x86-64-v4 -mprefer-vector-width=512)
  target_compile_definitions(ferry_engine PRIVATE FERRY_X86_LEVELS)
endif()

# The device path. The driver is opened at run time: nothing of CUDA is needed to build or to link.
include("${CMAKE_CURRENT_LIST_DIR}/FerryKernels.cmake")
function(ferry_cuda_library name)
  add_library(${name} STATIC EXCLUDE_FROM_ALL
    ${ferry_csrc}/cuda/capture.cpp
    ${ferry_csrc}/cuda/context.cpp
    ${ferry_csrc}/cuda/driver.cpp
    ${ferry_csrc}/cuda/driver_error.cpp
    ${ferry_csrc}/cuda/driver_problem.cpp
    ${ferry_csrc}/cuda/event.cpp
    ${ferry_csrc}/cuda/foreign_streams.cpp
    ${ferry_csrc}/cuda/fork_generation.cpp
    ${ferry_csrc}/cuda/host_range.cpp
    ${ferry_csrc}/cuda/kernel_image.cpp
    ${ferry_csrc}/cuda/kernel_library.cpp
    ${ferry_csrc}/cuda/kernels.cpp
    ${ferry_csrc}/cuda/loader.cpp
    ${ferry_csrc}/cuda/primary_contexts.cpp
    ${ferry_csrc}/cuda/pushed_context.cpp
    ${ferry_csrc}/cuda/registration.cpp
    ${ferry_csrc}/cuda/runtime.cpp
    ${ferry_csrc}/cuda/stream.cpp
    ${ferry_csrc}/kernels/device_copy.cpp
    ${ferry_csrc}/kernels/piece_list.cpp
  )
  target_include_directories(${name} PUBLIC ${ferry_csrc})
  target_link_libraries(${name} PUBLIC Threads::Threads ${CMAKE_DL_LIBS} PRIVATE ferry_options)
  ferry_embed_kernels(${name} "${ferry_csrc}/cuda/kernel_image.cpp")
endfunction()

# Pinned memory and transfers, on the former.
function(ferry_device_library name cuda)
  add_library(${name} STATIC EXCLUDE_FROM_ALL
    ${ferry_csrc}/core/mutation.cpp
    ${ferry_csrc}/pinned/event_fate.cpp
    ${ferry_csrc}/pinned/fence.cpp
    ${ferry_csrc}/pinned/first_touch.cpp
    ${ferry_csrc}/pinned/host_pins.cpp
    ${ferry_csrc}/pinned/idle_blocks.cpp
    ${ferry_csrc}/pinned/memory_headroom.cpp
    ${ferry_csrc}/pinned/numa_node.cpp
    ${ferry_csrc}/pinned/page_access.cpp
    ${ferry_csrc}/pinned/pinned_block.cpp
    ${ferry_csrc}/pinned/pinned_lease.cpp
    ${ferry_csrc}/pinned/pinned_memory.cpp
    ${ferry_csrc}/pinned/pinned_pool.cpp
    ${ferry_csrc}/pinned/pinned_pages.cpp
    ${ferry_csrc}/pinned/pool_adoption.cpp
    ${ferry_csrc}/pinned/pool_epochs.cpp
    ${ferry_csrc}/pinned/pool_growth.cpp
    ${ferry_csrc}/pinned/retire_queue.cpp
    ${ferry_csrc}/pinned/slabs.cpp
    ${ferry_csrc}/transfer/arrival.cpp
    ${ferry_csrc}/transfer/abandoned.cpp
    ${ferry_csrc}/transfer/batch.cpp
    ${ferry_csrc}/transfer/batch_gather.cpp
    ${ferry_csrc}/transfer/batch_kernels.cpp
    ${ferry_csrc}/transfer/captured.cpp
    ${ferry_csrc}/transfer/device_staging.cpp
    ${ferry_csrc}/transfer/driver_copy.cpp
    ${ferry_csrc}/transfer/event_wait.cpp
    ${ferry_csrc}/transfer/graph_holds.cpp
    ${ferry_csrc}/transfer/host_ring.cpp
    ${ferry_csrc}/transfer/interruption.cpp
    ${ferry_csrc}/transfer/host_target.cpp
    ${ferry_csrc}/transfer/kernel_copy.cpp
    ${ferry_csrc}/transfer/link_figures.cpp
    ${ferry_csrc}/transfer/measure_link.cpp
    ${ferry_csrc}/transfer/measuring_time.cpp
    ${ferry_csrc}/transfer/moves.cpp
    ${ferry_csrc}/transfer/ordered_layouts.cpp
    ${ferry_csrc}/transfer/pack_chunks.cpp
    ${ferry_csrc}/transfer/pack_ring.cpp
    ${ferry_csrc}/transfer/path_choice.cpp
    ${ferry_csrc}/transfer/pending.cpp
    ${ferry_csrc}/transfer/pinned_pieces.cpp
    ${ferry_csrc}/transfer/refusals.cpp
    ${ferry_csrc}/transfer/replay_reader.cpp
    ${ferry_csrc}/transfer/replay_ring.cpp
    ${ferry_csrc}/transfer/ring_chunks.cpp
    ${ferry_csrc}/transfer/ring_copies.cpp
    ${ferry_csrc}/transfer/ring_packing.cpp
    ${ferry_csrc}/transfer/staged_moves.cpp
    ${ferry_csrc}/transfer/stream_work.cpp
    ${ferry_csrc}/transfer/through_ring.cpp
    ${ferry_csrc}/transfer/through_ring_kernels.cpp
    ${ferry_csrc}/transfer/transfers.cpp
    ${ferry_csrc}/transfer/unpack_ring.cpp
    ${ferry_csrc}/transfer/upload.cpp
    ${ferry_csrc}/transfer/upload_choice.cpp
  )
  target_link_libraries(${name} PUBLIC ${cuda} ferry_engine PRIVATE ferry_options)
endfunction()

ferry_cuda_library(ferry_cuda)
ferry_device_library(ferry_device ferry_cuda)
