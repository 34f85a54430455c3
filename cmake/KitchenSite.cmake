# The target `site`: build/site/html/index.html, made of docs/, the headers, and the tutorials' runs.
# Its programs are looked for when it is built, so that nobody else needs them.
set(site_folder ${CMAKE_BINARY_DIR}/site)
find_program(KITCHEN_DOXYGEN doxygen)
find_program(KITCHEN_DOT dot)
find_path(DOXYGEN_AWESOME_FOLDER doxygen-awesome.css PATHS /usr/share/doxygen-awesome-css)
find_path(MATHJAX_FOLDER MathJax.js PATHS /usr/share/javascript/mathjax)
if(NOT KITCHEN_DOXYGEN OR NOT KITCHEN_DOT OR NOT DOXYGEN_AWESOME_FOLDER OR NOT MATHJAX_FOLDER)
  add_custom_target(site
    COMMAND ${CMAKE_COMMAND} -E echo "The site needs Doxygen, Graphviz, its theme and MathJax:"
    COMMAND ${CMAKE_COMMAND} -E echo
      "apt-get install doxygen graphviz doxygen-awesome-css libjs-mathjax, then run cmake again"
    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
  return()
endif()
execute_process(COMMAND ${KITCHEN_DOXYGEN} --version OUTPUT_VARIABLE doxygen_version)
if(doxygen_version VERSION_LESS 1.9.4)
  message(WARNING "The site is tested with Doxygen 1.9.4 and later; found ${doxygen_version}")
endif()

set(SITE_FOLDER ${site_folder})
configure_file(${CMAKE_SOURCE_DIR}/docs/site/Doxyfile.in ${site_folder}/Doxyfile @ONLY)
set(page_commands "")
foreach(name IN LISTS KITCHEN_TUTORIALS)
  list(APPEND page_commands
    COMMAND tutorial_${name} --output-dir ${site_folder}/runs/${name}
    COMMAND tutorial_page ${CMAKE_SOURCE_DIR} ${name} ${site_folder}/runs/${name} ${site_folder}/pages)
endforeach()
add_custom_target(site
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${site_folder}/pages ${site_folder}/html
  ${page_commands}
  COMMAND site_pages ${CMAKE_SOURCE_DIR} ${site_folder}/pages
  COMMAND ${KITCHEN_DOXYGEN} ${site_folder}/Doxyfile
  COMMAND ${CMAKE_COMMAND} -E copy_directory ${MATHJAX_FOLDER} ${site_folder}/html/mathjax
  COMMAND ${CMAKE_COMMAND} -E make_directory ${site_folder}/html/docs/reference
  COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/docs/reference/documented_symbols.txt
    ${site_folder}/html/docs/reference
  COMMAND check_links ${site_folder}/html
  COMMAND ${CMAKE_COMMAND} -E echo "The site is ${site_folder}/html/index.html"
  VERBATIM)
