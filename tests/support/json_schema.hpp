// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

namespace nd::testing {

/// Checks a document against the part of JSON Schema that our schemas use: type, const, enum, required, properties,
/// additionalProperties, items, minimum, exclusiveMinimum, minItems, pattern, $ref into $defs. Any other keyword is reported, so that a schema
/// cannot promise what nobody checks. Returns "path: problem" for each problem.
class SchemaChecker {
 public:
  using Json = nlohmann::json;
  SchemaChecker(const Json& root, std::vector<std::string>& problems) : root_(root), problems_(problems) {}

  void check(const Json& value, const Json& schema, const std::string& path) {
    for (const auto& [keyword, rule] : schema.items()) {
      if (keyword == "$ref") check(value, root_.at(Json::json_pointer(rule.get<std::string>().substr(1))), path);
      else if (keyword == "type") type(value, rule, path);
      else if (keyword == "const") expect(value == rule, path, "is not " + rule.dump());
      else if (keyword == "enum") expect(std::find(rule.begin(), rule.end(), value) != rule.end(), path, value.dump() + " is none of " + rule.dump());
      else if (keyword == "required") required(value, rule, path);
      else if (keyword == "properties") properties(value, rule, path);
      else if (keyword == "additionalProperties") additional(value, schema, path);
      else if (keyword == "items") items(value, rule, path);
      else if (keyword == "minItems") expect(!value.is_array() || value.size() >= rule.get<std::size_t>(), path, "has too few items");
      else if (keyword == "minimum") expect(!value.is_number() || value.get<double>() >= rule.get<double>(), path, value.dump() + " is below " + rule.dump());
      else if (keyword == "exclusiveMinimum") expect(!value.is_number() || value.get<double>() > rule.get<double>(), path, value.dump() + " is not above " + rule.dump());
      else if (keyword == "pattern") expect(!value.is_string() || std::regex_search(value.get<std::string>(), std::regex(rule.get<std::string>())), path, "does not match");
      else expect(keyword == "$schema" || keyword == "$id" || keyword == "$defs" || keyword == "title" || keyword == "description", path, "unknown keyword " + keyword);
    }
  }

 private:
  void expect(bool holds, const std::string& path, const std::string& problem) {
    if (!holds) problems_.push_back((path.empty() ? "document" : path) + ": " + problem);
  }
  static bool is(const Json& value, const std::string& name) {
    if (name == "integer") return value.is_number_integer();
    if (name == "number") return value.is_number();
    return name == value.type_name();
  }
  void type(const Json& value, const Json& rule, const std::string& path) {
    bool any = false;
    for (const auto& name : rule.is_array() ? rule : Json::array({rule})) any = any || is(value, name.get<std::string>());
    expect(any, path, value.dump().substr(0, 40) + " is no " + rule.dump());
  }
  void required(const Json& value, const Json& rule, const std::string& path) {
    if (!value.is_object()) return;
    for (const auto& name : rule) expect(value.contains(name.get<std::string>()), path, "lacks " + name.dump());
  }
  void properties(const Json& value, const Json& rule, const std::string& path) {
    if (!value.is_object()) return;
    for (const auto& [name, schema] : rule.items())
      if (value.contains(name)) check(value.at(name), schema, path + "/" + name);
  }
  void additional(const Json& value, const Json& schema, const std::string& path) {
    if (!value.is_object()) return;
    const Json& rule = schema.at("additionalProperties");
    for (const auto& [name, member] : value.items()) {
      if (schema.contains("properties") && schema["properties"].contains(name)) continue;
      if (rule.is_boolean()) expect(rule.get<bool>(), path, "has the unknown member " + name);
      else check(member, rule, path + "/" + name);
    }
  }
  void items(const Json& value, const Json& rule, const std::string& path) {
    if (!value.is_array()) return;
    for (std::size_t i = 0; i < value.size(); ++i) check(value[i], rule, path + "/" + std::to_string(i));
  }

  const Json& root_;
  std::vector<std::string>& problems_;
};

inline std::vector<std::string> schema_problems(const nlohmann::json& document, const nlohmann::json& schema) {
  std::vector<std::string> problems;
  SchemaChecker(schema, problems).check(document, schema, "");
  return problems;
}

}  // namespace nd::testing
