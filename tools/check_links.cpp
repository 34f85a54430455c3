/// @file  check_links.cpp
/// @brief Checks that every local link of a folder of HTML pages leads to a file, and to an anchor
/// that is there, and that no page loads anything from the network.
///
/// Usage: check_links <folder>       exit 0: clean, 1: dead links (page:line: message), 2: wrong
/// usage

#include "source_tree.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <regex>
#include <set>

namespace kitchen::tools {
namespace {

namespace fs = std::filesystem;

struct Link {
  std::string target;
  std::size_t line = 0;
  bool is_loaded = false;  // src or a style sheet, not a link that a reader may follow
};

struct Html {
  std::set<std::string> anchors;
  std::vector<Link> links;
};

Html read_page(const SourceFile& file) {
  static const std::regex attribute(R"re(\s(href|src|id|name)="([^"]*)")re");
  Html page;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    for (std::sregex_iterator match(line.begin(), line.end(), attribute), end; match != end;
         ++match) {
      const std::string name = (*match)[1];
      const std::string value = (*match)[2];
      if (name == "href" || name == "src") {
        page.links.push_back(
            {value, i + 1, name == "src" || line.find("<link") != std::string::npos});
      } else {
        page.anchors.insert(value);
      }
    }
  }
  return page;
}

std::string message_for(const Link& link, const fs::path& page, const fs::path& root,
                        const std::map<std::string, Html>& pages) {
  static const std::regex inside("^(javascript:|data:).*");
  static const std::regex remote("^(https?:|mailto:|//).*");
  if (std::regex_match(link.target, inside)) return "";
  if (std::regex_match(link.target, remote)) {
    return link.is_loaded ? "loads " + link.target + " from the network" : "";
  }
  const std::size_t hash = link.target.find('#');
  const std::string file = link.target.substr(0, std::min(hash, link.target.find('?')));
  const std::string anchor = hash == std::string::npos ? "" : link.target.substr(hash + 1);
  const fs::path target = file.empty() ? page : (page.parent_path() / file).lexically_normal();
  if (!fs::exists(root / target)) return "the link to '" + link.target + "' leads nowhere";
  // Doxygen 1.9.4 links to the section of nested classes even where all of them are private.
  if (link.target == "#nested-classes") return "";
  const auto known = pages.find(target.generic_string());
  if (anchor.empty() || known == pages.end() || known->second.anchors.count(anchor) != 0) return "";
  return "the anchor of '" + link.target + "' is not there";
}

}  // namespace
}  // namespace kitchen::tools

int main(int argc, char** argv) {
  using namespace kitchen::tools;
  if (argc != 2) {
    std::cerr << "usage: check_links <folder of HTML pages>\n";
    return 2;
  }
  try {
    const std::filesystem::path root = argv[1];
    std::map<std::string, Html> pages;
    // Doxygen writes all pages into one folder; what lies below is installed by others.
    for (const auto& entry : std::filesystem::directory_iterator(root)) {
      if (entry.path().extension() != ".html") continue;
      const std::string path = entry.path().lexically_relative(root).generic_string();
      pages[path] = read_page(read_file(root.string(), path));
    }
    Findings findings;
    for (const auto& [path, page] : pages) {
      for (const Link& link : page.links) {
        const std::string message = message_for(link, path, root, pages);
        if (!message.empty()) findings.error(path, link.line, message);
      }
    }
    return findings.report("check_links", pages.size());
  } catch (const std::exception& error) {
    std::cerr << "check_links: " << error.what() << '\n';
    return 2;
  }
}
