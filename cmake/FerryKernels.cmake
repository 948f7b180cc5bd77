# The device kernels: one image with code for every architecture that the toolkit knows, embedded in kernel_image.cpp.
# Nothing of CUDA is linked, and CUDA is no language of this project: nvcc is a tool that makes a file.

set(TENSORFERRY_KERNELS AUTO CACHE STRING "Device kernels: AUTO (where nvcc is found), ON (or an error), OFF")
set_property(CACHE TENSORFERRY_KERNELS PROPERTY STRINGS AUTO ON OFF)

set(ferry_kernel_image "")
set(ferry_kernels_missing "")

function(ferry_find_nvcc)
  find_program(TENSORFERRY_NVCC nvcc
    HINTS ENV CUDACXX ENV CUDA_HOME ENV CUDA_PATH
    PATHS /usr/local/cuda /usr/local/cuda-13.0 /usr/local/cuda-12.9 /usr/local/cuda-12.8 /opt/cuda
    PATH_SUFFIXES bin)
  if(DEFINED ENV{CUDACXX} AND NOT TENSORFERRY_NVCC)
    find_program(TENSORFERRY_NVCC "$ENV{CUDACXX}")
  endif()
endfunction()

# The architectures that we have code for, as far as this nvcc knows them: "75;80;86".
function(ferry_kernel_architectures result)
  execute_process(COMMAND "${TENSORFERRY_NVCC}" --list-gpu-arch OUTPUT_VARIABLE listed ERROR_QUIET)
  set(known "")
  foreach(architecture 75 80 86 89 90 100 120)
    if(listed MATCHES "compute_${architecture}(\n|$)")
      list(APPEND known ${architecture})
    endif()
  endforeach()
  set(${result} "${known}" PARENT_SCOPE)
endfunction()

function(ferry_kernel_toolkit result)
  execute_process(COMMAND "${TENSORFERRY_NVCC}" --version OUTPUT_VARIABLE says ERROR_QUIET)
  string(REGEX MATCH "V([0-9]+\\.[0-9]+\\.[0-9]+)" version "${says}")
  set(${result} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

if(TENSORFERRY_KERNELS STREQUAL "OFF")
  set(ferry_kernels_missing "it was built with TENSORFERRY_KERNELS=OFF")
else()
  ferry_find_nvcc()
  if(TENSORFERRY_NVCC)
    ferry_kernel_architectures(ferry_kernel_architectures)
    ferry_kernel_toolkit(ferry_kernel_toolkit)
  endif()
  if(NOT TENSORFERRY_NVCC)
    set(ferry_kernels_missing "no nvcc was found when it was built")
  elseif(NOT ferry_kernel_architectures OR NOT ferry_kernel_toolkit)
    set(ferry_kernels_missing "the nvcc that was found when it was built does not work")
  endif()
  if(ferry_kernels_missing AND TENSORFERRY_KERNELS STREQUAL "ON")
    message(FATAL_ERROR "TENSORFERRY_KERNELS=ON: ${ferry_kernels_missing}; set CUDACXX, or use AUTO")
  endif()
endif()

if(ferry_kernels_missing)
  message(STATUS "No device kernels: ${ferry_kernels_missing}")
else()
  set(ferry_kernel_flags "")
  foreach(architecture IN LISTS ferry_kernel_architectures)
    list(APPEND ferry_kernel_flags "-gencode=arch=compute_${architecture},code=sm_${architecture}")
  endforeach()
  # Text that drivers compile for what is newer than that; the second newest for machines between the two.
  set(ferry_kernel_ptx ${ferry_kernel_architectures})
  list(REVERSE ferry_kernel_ptx)
  list(SUBLIST ferry_kernel_ptx 0 2 ferry_kernel_ptx)
  list(REVERSE ferry_kernel_ptx)
  foreach(architecture IN LISTS ferry_kernel_ptx)
    list(APPEND ferry_kernel_flags "-gencode=arch=compute_${architecture},code=compute_${architecture}")
  endforeach()
  # Images of a 13.x toolkit need a driver of that major version; those of 12.x the oldest that we support.
  string(REGEX MATCH "^[0-9]+" ferry_kernel_major "${ferry_kernel_toolkit}")
  math(EXPR ferry_kernel_driver "${ferry_kernel_major} * 1000")
  if(ferry_kernel_toolkit VERSION_GREATER_EQUAL 12.8)
    list(APPEND ferry_kernel_flags --compress-mode=speed)  # what older drivers can unpack, too
  endif()
  if(TENSORFERRY_WERROR)
    list(APPEND ferry_kernel_flags -Werror all-warnings)
  endif()

  set(ferry_kernel_image "${CMAKE_BINARY_DIR}/ferry_kernels.fatbin")
  get_filename_component(ferry_kernel_root "${CMAKE_CURRENT_LIST_DIR}/../csrc" ABSOLUTE)
  # Without fused multiply-add: results are the host's, bit for bit.
  add_custom_command(
    OUTPUT "${ferry_kernel_image}"
    COMMAND "${TENSORFERRY_NVCC}" -fatbin -std=c++17 -O3 -fmad=false --threads 2 "-I${ferry_kernel_root}"
            -MD -MF "${ferry_kernel_image}.d" ${ferry_kernel_flags} -o "${ferry_kernel_image}"
            "${ferry_kernel_root}/kernels/kernels.cu"
    DEPENDS "${ferry_kernel_root}/kernels/kernels.cu"
    DEPFILE "${ferry_kernel_image}.d"
    COMMENT "Compiling device kernels by nvcc ${ferry_kernel_toolkit} for ${ferry_kernel_architectures}"
    VERBATIM)
  add_custom_target(ferry_kernel_image DEPENDS "${ferry_kernel_image}")
  message(STATUS "Device kernels by nvcc ${ferry_kernel_toolkit} for ${ferry_kernel_architectures}")
endif()

# Embeds the image, or the reason why there is none, in the file of `target` that asks for it.
function(ferry_embed_kernels target source)
  if(ferry_kernels_missing)
    set_source_files_properties(${source} PROPERTIES
      COMPILE_DEFINITIONS "FERRY_KERNELS_MISSING=\"${ferry_kernels_missing}\"")
    return()
  endif()
  list(JOIN ferry_kernel_architectures " " architectures)
  list(JOIN ferry_kernel_ptx " " ptx)
  set_source_files_properties(${source} PROPERTIES
    OBJECT_DEPENDS "${ferry_kernel_image}"
    COMPILE_DEFINITIONS "FERRY_KERNEL_FATBIN=\"${ferry_kernel_image}\";FERRY_KERNEL_ARCHITECTURES=\"${architectures}\";FERRY_KERNEL_PTX=\"${ptx}\";FERRY_KERNEL_TOOLKIT=\"${ferry_kernel_toolkit}\";FERRY_KERNEL_DRIVER=${ferry_kernel_driver}")
  add_dependencies(${target} ferry_kernel_image)
endfunction()
