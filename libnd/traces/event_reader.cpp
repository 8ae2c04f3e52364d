// SPDX-License-Identifier: Apache-2.0
#include "traces/event_reader.hpp"

#include <nlohmann/json.hpp>

#include "traces/chrome.hpp"

namespace nd::traces {

namespace {

constexpr int kDeepest = 64;
constexpr std::size_t kLongestText = 4096;  // of a name that is kept

/// Follows the parser: an event is an object that is an element of the array "traceEvents" (or of the document, when that is an array).
class EventHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit EventHandler(const std::function<void(const TraceEvent&)>& event) : event_(event) {}

  bool null() override { return value({}); }
  bool boolean(bool) override { return value({}); }
  bool number_integer(number_integer_t number) override { return in_event() ? value(std::to_string(number)) : true; }
  bool number_unsigned(number_unsigned_t number) override { return in_event() ? value(std::to_string(number)) : true; }
  bool number_float(number_float_t, const string_t& text) override { return value(text); }
  bool string(string_t& text) override { return value(text); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    if (++depth_ > kDeepest) return refuse("is nested too deeply");
    if (events_depth_ > 0 && depth_ == events_depth_ + 1) begin();
    if (event_depth_ > 0 && depth_ == event_depth_ + 1) in_args_ = key_ == "args";
    return true;
  }
  bool end_object() override {
    if (depth_ == event_depth_) finish();
    if (event_depth_ > 0 && depth_ == event_depth_ + 1) in_args_ = false;
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (++depth_ > kDeepest) return refuse("is nested too deeply");
    if (depth_ == 1 || (depth_ == 2 && key_ == "traceEvents")) {
      events_depth_ = depth_;
      found_ = true;
    }
    return true;
  }
  bool end_array() override {
    if (depth_ == events_depth_) events_depth_ = 0;
    --depth_;
    return true;
  }
  bool key(string_t& name) override {
    if (name.size() > kLongestText) name.resize(kLongestText);
    key_ = name;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return refuse("is no JSON document from byte " + std::to_string(position) + " on");
  }

  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] bool found() const { return found_; }

 private:
  [[nodiscard]] bool in_event() const { return event_depth_ > 0; }
  bool refuse(std::string why) {
    problem_ = std::move(why);
    return false;
  }
  void begin() {
    event_depth_ = depth_;
    complete_ = false;
    elements_ = 0;
    width_ = 0;
    current_.name.clear();
    current_.category.clear();
    current_.process.clear();
    current_.thread.clear();
    current_.begin.clear();
    current_.duration.clear();
    current_.bytes = 0;
  }
  bool value(const std::string& text) {
    if (!in_event()) return true;
    if (depth_ == event_depth_) field(text);
    else if (in_args_ && depth_ == event_depth_ + 1) argument(text);
    return true;
  }
  void field(const std::string& text) {
    if (key_ == "ph") complete_ = text == "X";
    else if (key_ == "name") current_.name = text.size() > kLongestText ? text.substr(0, kLongestText) : text;
    else if (key_ == "cat") current_.category = text.substr(0, 64);
    else if (key_ == "pid") current_.process = text.substr(0, 64);
    else if (key_ == "tid") current_.thread = text.substr(0, 64);
    else if (key_ == "ts") current_.begin = text;
    else if (key_ == "dur") current_.duration = text;
  }
  void argument(const std::string& text) {
    if (key_ == "In msg nelems") elements_ = std::strtod(text.c_str(), nullptr);
    else if (key_ == "In msg size") current_.bytes = std::strtod(text.c_str(), nullptr);
    else if (key_ == "dtype") width_ = text == "BFloat16" || text == "Half" ? 2 : text == "Float" || text == "Int" ? 4 : text == "Double" || text == "Long" ? 8 : 1;
  }
  void finish() {
    event_depth_ = 0;
    if (!complete_) return;
    if (current_.bytes == 0) current_.bytes = elements_ * width_;
    event_(current_);
  }

  const std::function<void(const TraceEvent&)>& event_;
  TraceEvent current_;
  std::string key_, problem_;
  int depth_ = 0, events_depth_ = 0, event_depth_ = 0;
  double elements_ = 0, width_ = 0;
  bool complete_ = false, in_args_ = false, found_ = false;
};

}  // namespace

std::optional<Diagnostic> read_events(const std::string& path, const std::function<void(const TraceEvent&)>& event) {
  const auto stream = open_stream(path);
  if (stream == nullptr) return make_diagnostic(Errc::io, {path, 0, 0, {}}, "cannot be read");
  EventHandler handler(event);
  const bool whole = nlohmann::json::sax_parse(*stream, &handler);
  if (!whole || !handler.problem().empty())
    return make_diagnostic(Errc::syntax, {path, 0, 0, {}}, handler.problem().empty() ? "is no JSON document" : handler.problem());
  if (!handler.found()) return make_diagnostic(Errc::missing_field, {path, 0, 0, "traceEvents"}, "is missing: no Chrome trace");
  return std::nullopt;
}

}  // namespace nd::traces
