# Defines the target ttcodegen_backend: the library that runs the module's operations.
set(TTCODEGEN_BACKEND "cpu" CACHE STRING "What the operations run on: cpu or tt-metal")
set_property(CACHE TTCODEGEN_BACKEND PROPERTY STRINGS cpu tt-metal)
set(TTCODEGEN_CPU_DIR "" CACHE PATH "The folder of the CPU backend, as installed by ttcodegen")

# Sets `result` to the cache folder of ttcodegen's builds for this compiler; to nothing if users other
# than the owner can write to it.
function(ttcodegen_cached_cpu_dir result)
  set(cache "$ENV{HOME}/.cache")
  foreach(variable XDG_CACHE_HOME TTCODEGEN_CACHE)
    if(NOT "$ENV{${variable}}" STREQUAL "")
      set(cache "$ENV{${variable}}")
    endif()
  endforeach()
  execute_process(COMMAND id -u OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND find "${cache}/ttcodegen" -maxdepth 0 -user "${user}" ! -perm /022
    OUTPUT_VARIABLE own ERROR_QUIET)
  if(NOT own)
    return()
  endif()
  string(TOLOWER "${CMAKE_CXX_COMPILER_ID}" compiler)
  set(${result}
    "${cache}/ttcodegen/cpu-${TTCODEGEN_VERSION}-${compiler}-${CMAKE_CXX_COMPILER_VERSION}"
    PARENT_SCOPE
  )
endfunction()

# Builds the CPU backend with a ttcodegen on PATH; sets `result` to its folder, or to nothing.
function(ttcodegen_build_cpu_dir result)
  find_program(TTCODEGEN_PROGRAM ttcodegen)
  mark_as_advanced(TTCODEGEN_PROGRAM)
  set(${result} "" PARENT_SCOPE)
  if(TTCODEGEN_PROGRAM)
    message(STATUS "Building the CPU backend; this happens once")
    execute_process(
      COMMAND "${CMAKE_COMMAND}" -E env "CXX=${CMAKE_CXX_COMPILER}"
        "${TTCODEGEN_PROGRAM}" --cpu-backend-dir
      OUTPUT_VARIABLE directory
      RESULT_VARIABLE status
      OUTPUT_STRIP_TRAILING_WHITESPACE
    )
    if(status EQUAL 0)
      set(${result} "${directory}" PARENT_SCOPE)
    endif()
  endif()
endfunction()

function(ttcodegen_find_cpu_backend)
  foreach(target ttcodegen::cpu Threads::Threads)
    if(NOT TARGET ${target})
      list(APPEND unknown_targets ${target})
    endif()
  endforeach()
  if(TTCODEGEN_CPU_DIR)
    find_package(TTCodegenCPU ${TTCODEGEN_VERSION} EXACT QUIET CONFIG
      PATHS "${TTCODEGEN_CPU_DIR}" NO_DEFAULT_PATH
    )
  else()
    ttcodegen_cached_cpu_dir(cached)
    find_package(TTCodegenCPU ${TTCODEGEN_VERSION} EXACT QUIET CONFIG HINTS "${cached}")
    if(NOT TTCodegenCPU_FOUND)
      ttcodegen_build_cpu_dir(built)
      find_package(TTCodegenCPU ${TTCODEGEN_VERSION} EXACT QUIET CONFIG HINTS "${built}")
    endif()
  endif()
  if(NOT TTCodegenCPU_FOUND)
    message(FATAL_ERROR
      "The CPU backend of ttcodegen ${TTCODEGEN_VERSION} was not found.\n"
      "Install it with 'pip install ttcodegen==${TTCODEGEN_VERSION}', so that the program ttcodegen is on PATH; "
      "or give its folder with -DTTCODEGEN_CPU_DIR=..., which 'ttcodegen --cpu-backend-dir' prints; "
      "or run on a card with -DTTCODEGEN_BACKEND=tt-metal."
    )
  endif()
  message(STATUS "CPU backend: ${TTCodegenCPU_DIR}")
  # CMake before 3.24 does not know CMAKE_FIND_PACKAGE_TARGETS_GLOBAL. Targets from before belong to
  # another folder, which sees them anyway.
  foreach(target ${unknown_targets})
    set_target_properties(${target} PROPERTIES IMPORTED_GLOBAL TRUE)
  endforeach()
  target_link_libraries(ttcodegen_backend INTERFACE ttcodegen::cpu)
endfunction()

# A source tree of tt-metal, built in place: its headers are in the tree, those of its
# dependencies in the cache of its package manager.
function(ttcodegen_use_tt_metal_tree home)
  foreach(candidate build/lib build_Release/lib lib)
    if(EXISTS "${home}/${candidate}/_ttnncpp.so")
      set(libraries "${home}/${candidate}")
      break()
    endif()
  endforeach()
  if(NOT libraries)
    message(FATAL_ERROR
      "TT_METAL_HOME is ${home}, but there is no build/lib/_ttnncpp.so in it: build tt-metal first."
    )
  endif()
  if(DEFINED ENV{CPM_SOURCE_CACHE})
    set(packages "$ENV{CPM_SOURCE_CACHE}")
  else()
    set(packages "${home}/.cpmcache")
  endif()
  file(GLOB dependencies LIST_DIRECTORIES true
    "${packages}/fmt/*/include"
    "${packages}/spdlog/*/include"
    "${packages}/tt-logger/*/include"
    "${packages}/nlohmann_json/*/include"
    "${packages}/enchantum/*/enchantum/include"
    "${packages}/boost/*/libs/*/include"
    "${packages}/reflect/*"
  )
  target_include_directories(ttcodegen_backend SYSTEM INTERFACE
    "${home}"
    "${home}/ttnn"
    "${home}/ttnn/api"
    "${home}/ttnn/cpp"
    "${home}/ttnn/cpp/ttnn"
    "${home}/tt_metal"
    "${home}/tt_metal/api"
    "${home}/tt_metal/hostdevcommon/api"
    "${home}/tt_metal/hw/inc"
    "${home}/tt_metal/third_party/tracy/public"
    "${home}/tt_metal/third_party/umd"
    "${home}/tt_metal/third_party/umd/device/api"
    "${home}/tt_stl"
    "${home}/tt_stl/tt_stl"
    ${dependencies}
  )
  # As the targets of fmt, spdlog and reflect define them: one fmt for all, no tests in headers.
  target_compile_definitions(ttcodegen_backend INTERFACE
    FMT_HEADER_ONLY SPDLOG_FMT_EXTERNAL NTEST
  )
  target_link_libraries(ttcodegen_backend INTERFACE
    "${libraries}/_ttnncpp.so" "${libraries}/libtt_metal.so"
  )
  if(EXISTS "${libraries}/libtt_stl.so")
    target_link_libraries(ttcodegen_backend INTERFACE "${libraries}/libtt_stl.so")
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_definitions(ttcodegen_backend INTERFACE DISABLE_NAMESPACE_STATIC_ASSERT)
  endif()
endfunction()

function(ttcodegen_find_tt_metal)
  set(home "$ENV{TT_METAL_HOME}")
  if(DEFINED TT_METAL_HOME)
    set(home "${TT_METAL_HOME}")
  endif()
  find_package(TT-Metalium QUIET CONFIG HINTS "${home}/build" "${home}")
  find_package(TT-NN QUIET CONFIG HINTS "${home}/build" "${home}")
  if(TT-Metalium_FOUND AND (TT-NN_FOUND OR NOT TTCODEGEN_CALLS_TTNN))
    message(STATUS "tt-metal: ${TT-Metalium_DIR}")
    target_link_libraries(ttcodegen_backend INTERFACE TT::Metalium)
    if(TT-NN_FOUND)
      target_link_libraries(ttcodegen_backend INTERFACE TTNN::TTNN)
    endif()
    # The package lacks the headers of pooling, attention and others; the source tree has them all.
    if(EXISTS "${home}/ttnn/cpp/ttnn/operations")
      target_include_directories(ttcodegen_backend SYSTEM INTERFACE
        "${home}/ttnn/api" "${home}/ttnn/cpp" "${home}"
      )
    endif()
  elseif(home)
    message(STATUS "tt-metal: source tree ${home}")
    ttcodegen_use_tt_metal_tree("${home}")
  else()
    message(FATAL_ERROR
      "tt-metal was not found. Set TT_METAL_HOME to its source tree, or CMAKE_PREFIX_PATH to where "
      "it is installed, so that find_package(TT-Metalium) and find_package(TT-NN) succeed."
    )
  endif()
  # Its headers have inline functions that need the instruction set which the library requires.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    target_compile_options(ttcodegen_backend INTERFACE -march=x86-64-v3)
  endif()
endfunction()

# Several modules in one program share the backend, and the sources in support/ as well.
if(TARGET ttcodegen_backend)
  get_target_property(other_version ttcodegen_backend TTCODEGEN_VERSION)
  if(NOT other_version STREQUAL TTCODEGEN_VERSION)
    message(FATAL_ERROR
      "The modules of this program were written by ttcodegen ${other_version} and "
      "${TTCODEGEN_VERSION}: write them again with one version."
    )
  endif()
  return()
endif()

add_library(ttcodegen_backend INTERFACE)
set_target_properties(ttcodegen_backend PROPERTIES TTCODEGEN_VERSION "${TTCODEGEN_VERSION}")
# By default, imported targets are visible only in the folder that called find_package.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
if(TTCODEGEN_BACKEND STREQUAL "cpu")
  ttcodegen_find_cpu_backend()
elseif(TTCODEGEN_BACKEND STREQUAL "tt-metal")
  ttcodegen_find_tt_metal()
else()
  message(FATAL_ERROR "TTCODEGEN_BACKEND is '${TTCODEGEN_BACKEND}'; it can be cpu or tt-metal")
endif()
