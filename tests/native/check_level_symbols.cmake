# Fails when an object of a kernel level defines a weak symbol outside the level's namespace. Of an inline function that
# several objects define the linker keeps one copy: that could be the newest processor's, and run on all.
#   cmake -DNM=nm -DLEVEL=avx2 "-DOBJECTS=a.o;b.o" -P check_level_symbols.cmake
string(LENGTH "${LEVEL}" length)
set(namespace "5ferry${length}${LEVEL}")
list(LENGTH OBJECTS count)
if(count EQUAL 0)
  message(FATAL_ERROR "no objects of level ${LEVEL}")
endif()
execute_process(COMMAND ${NM} --defined-only ${OBJECTS} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[0-9a-f]+ [WwVvu] [^\n]+" weak "${symbols}")
list(FILTER weak EXCLUDE REGEX "${namespace}|DW\\.ref\\.")  # the latter point to the unwinder's routine
if(weak)
  list(JOIN weak "\n  " lines)
  message(FATAL_ERROR "weak symbols outside ferry::${LEVEL}:\n  ${lines}")
endif()
message(STATUS "${count} objects of level ${LEVEL}: no weak symbol outside its namespace")
