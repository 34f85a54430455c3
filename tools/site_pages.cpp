/// @file  site_pages.cpp
/// @brief Writes the pages of the site that are lists: the tutorials with their graph, and the
/// documented names with the file, the tutorials and the tests of each, the other pages by kind,
/// and the sources.
///
/// Usage: site_pages <root> <output folder>       exit 0: done, 1: a source cannot be read, 2:
/// usage

#include "bibliography.h"
#include "documented_symbols.h"
#include "source_tree.h"
#include "tutorial_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <stdexcept>

namespace kitchen::tools {
namespace {

std::string tutorial_graph(const std::vector<Tutorial>& tutorials) {
  std::string graph =
      "@dot\ndigraph tutorials {\n  rankdir=TB; bgcolor=\"transparent\";\n"
      "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\", fontname=\"sans\", "
      "fontsize=11];\n";
  for (const Tutorial& tutorial : tutorials) {
    graph += fmt::format("  t{} [label=\"{} {}\", URL=\"@ref tutorial_{}\"];\n", tutorial.number(),
                         tutorial.number(), tutorial.title, tutorial.name);
    for (const std::string& base : tutorial.builds_on) {
      graph += fmt::format("  t{} -> t{};\n", base.substr(0, 2), tutorial.number());
    }
  }
  return graph + "}\n@enddot\n";
}

std::string tutorial_index(const std::vector<Tutorial>& tutorials) {
  std::string page = "# Tutorials {#tutorials}\n\n";
  page +=
      "Each tutorial is one program that you can run, step through and change, and one page made "
      "of\n"
      "it. Numbers and pictures on the pages come from a run. An arrow leads from a tutorial to "
      "those\n"
      "that build on it.\n\n";
  page += tutorial_graph(tutorials);
  page += "\n| | Goal | New | Minutes |\n|---|---|---|---|\n";
  for (const Tutorial& tutorial : tutorials) {
    std::string ideas;
    for (const std::string& idea : tutorial.introduces) ideas += (ideas.empty() ? "" : ", ") + idea;
    page += fmt::format("| @ref tutorial_{} | {} | {} | {} |\n", tutorial.name, tutorial.goal,
                        ideas, tutorial.minutes);
  }
  return page;
}

/// Names of the tests below a line of labels that has `symbol` among them.
std::vector<std::string> tests_of(const std::string& symbol, const std::vector<SourceFile>& tests) {
  const std::string start = "// labels:";
  std::set<std::string> suites;
  for (const SourceFile& file : tests) {
    for (std::size_t i = 0; i + 1 < file.lines.size(); ++i) {
      if (!starts_with(file.lines[i], start) || !contains_word(file.lines[i], symbol)) continue;
      const std::string& test = file.lines[i + 1];
      const std::size_t open = test.find('(');
      if (starts_with(test, "TEST") && open != std::string::npos) {
        suites.insert(test.substr(open + 1, test.find(',') - open - 1));
      }
    }
  }
  return {suites.begin(), suites.end()};
}

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text.empty() ? "–" : text;
}

std::vector<std::string> tutorials_of(const std::string& symbol,
                                      const std::vector<Tutorial>& tutorials) {
  std::vector<std::string> pages;
  for (const Tutorial& tutorial : tutorials) {
    const bool uses =
        std::any_of(tutorial.program.begin(), tutorial.program.end(),
                    [&](const std::string& line) { return contains_word(line, symbol); });
    if (uses) pages.push_back("@ref tutorial_" + tutorial.name + " \"" + tutorial.number() + "\"");
  }
  return pages;
}

std::string symbol_table(const std::string& root, const std::vector<Tutorial>& tutorials) {
  const std::vector<SourceFile> tests = read_tree(root, "tests", {".cpp"});
  std::string page = "# The documented API {#documented_api}\n\n";
  page +=
      "Every documented name, the file of its name, the tutorials that use it, and the test "
      "suites\n"
      "that prove it. `ctest --test-dir build -L NAME` runs the tests of a name.\n\n"
      "| Name | File | Tutorial | Tests |\n|---|---|---|---|\n";
  for (const DocumentedSymbol& symbol : read_symbols(root)) {
    const bool has_page = symbol.kind == "class" && !symbol.is_planned;
    const std::string name =
        has_page ? "@ref kitchen::" + symbol.name + " \"" + symbol.name + "\"" : symbol.name;
    const std::string file_name = symbol.header.substr(symbol.header.rfind('/') + 1);
    const std::string file =
        symbol.is_planned ? "planned" : "@ref kitchen/" + symbol.header + " \"" + file_name + "\"";
    page += fmt::format("| {} | {} | {} | {} |\n", name, file,
                        joined(tutorials_of(symbol.name, tutorials)),
                        joined(tests_of(symbol.name, tests)));
  }
  return page;
}

/// A page that lists the pages of a folder of docs/ by their titles.
std::string folder_index(const std::string& root, const std::string& folder,
                         const std::string& heading, const std::string& question) {
  std::string page = fmt::format("# {}\n\n{}\n\n", heading, question);
  for (const SourceFile& file : read_tree(root, folder, {".md"})) {
    const std::string title = file.lines.empty() ? "" : trimmed(file.lines[0]);
    if (!starts_with(title, "# ")) throw std::runtime_error(file.path + ": no title '# ...'");
    page += fmt::format("- [{}]({}/{})\n", title.substr(2), root, file.path);
  }
  return page;
}

std::string source_list(const std::string& root) {
  std::string page = "# Sources {#sources}\n\n";
  page += "What the code and the pages take from others. Each says so where it does.\n\n";
  for (const Source& source : read_bibliography(root)) {
    page += fmt::format("- {}: *{}*, {}", source.author, source.title, source.year);
    if (!source.eprint.empty()) {
      page += fmt::format(", [arXiv:{0}](https://arxiv.org/abs/{0})", source.eprint);
    }
    page += "\n";
  }
  return page;
}

void write_page(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace
}  // namespace kitchen::tools

int main(int argc, char** argv) {
  using namespace kitchen::tools;
  if (argc != 3) {
    std::cerr << "usage: site_pages <root> <output folder>\n";
    return 2;
  }
  try {
    const std::string output = argv[2];
    std::filesystem::create_directories(output);
    const std::vector<Tutorial> tutorials = read_tutorials(argv[1]);
    write_page(output + "/tutorials.md", tutorial_index(tutorials));
    write_page(output + "/documented_api.md", symbol_table(argv[1], tutorials));
    write_page(output + "/how_to.md", folder_index(argv[1], "docs/how-to", "How to {#how_to}",
                                                   "One task a page, without theory."));
    write_page(output + "/explanation.md",
               folder_index(argv[1], "docs/explanation", "Explanation {#explanation}",
                            "Why it is built this way."));
    write_page(output + "/sources.md", source_list(argv[1]));
  } catch (const std::exception& error) {
    std::cerr << "site_pages: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
