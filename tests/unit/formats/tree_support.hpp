// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "formats/tree/node.hpp"

/// Line, column and code of the first error, "3:5 duplicate_key"; "ok" for a value.
inline std::string outcome(const nd::Result<nd::formats::ConfigNode>& result) {
  if (result) return "ok";
  const auto& first = result.error().diagnostics.front();
  return std::to_string(first.where.line) + ":" + std::to_string(first.where.column) + " " + nd::to_text(first.code);
}

/// "line:column path" of a node.
inline std::string place(const nd::formats::ConfigNode& node) {
  return std::to_string(node.where.line) + ":" + std::to_string(node.where.column) + " " + node.where.path;
}

/// The node at a chain of keys; throws when it is not there.
inline const nd::formats::ConfigNode& at(const nd::formats::ConfigNode& root, std::initializer_list<const char*> keys) {
  const nd::formats::ConfigNode* node = &root;
  for (const char* key : keys) {
    node = node->find(key);
    if (node == nullptr) throw std::runtime_error(std::string("no key ") + key);
  }
  return *node;
}
