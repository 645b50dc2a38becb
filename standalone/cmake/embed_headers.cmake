# Writes a source that holds the headers device kernels include, so that a program finds them wherever
# it runs: cmake -DROOT=<include folder> -DHEADERS=<relative paths> -DOUTPUT=<file> -P embed_headers.cmake
string(REPLACE "|" ";" HEADERS "${HEADERS}")
set(text "#include \"device/device_headers.hpp\"\n\nnamespace ttcodegen::device {\n\n")
string(APPEND text "const DeviceHeader kDeviceHeaders[] = {\n")
foreach(header IN LISTS HEADERS)
  # A bracket argument keeps semicolons and brackets of the content as they are.
  file(READ "${ROOT}/${header}" content)
  string(APPEND text "    {\"${header}\", R\"ttcodegen(${content})ttcodegen\"},\n")
endforeach()
string(APPEND text "    {nullptr, nullptr},\n};\n\n}  // namespace ttcodegen::device\n")
file(WRITE "${OUTPUT}" "${text}")
