// SPDX-License-Identifier: Apache-2.0
// Trace Event Format of chrome://tracing, which ui.perfetto.dev reads: complete events ("X") on one thread per stage.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <vector>

#include "nd/schedule.hpp"

namespace nd {

namespace {

constexpr double kMicroseconds = 1e6;  // per second

void append_number(std::string& out, double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out.append(buffer, end);
}

void append_text(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    } else {
      out += c;
    }
  }
  out += '"';
}

class Events {
 public:
  Events() { text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"; }

  void name_process(std::string_view name) {
    begin("process_name", "M", 0);
    text_ += ",\"args\":{\"name\":";
    append_text(text_, name);
    text_ += "}}";
  }
  /// Viewers list threads by sort index.
  void name_track(int track, std::string_view name) {
    begin("thread_name", "M", track);
    text_ += ",\"args\":{\"name\":";
    append_text(text_, name);
    text_ += "}}";
    begin("thread_sort_index", "M", track);
    text_ += ",\"args\":{\"sort_index\":" + std::to_string(track) + "}}";
  }
  /// `arguments`: the inside of a JSON object.
  void interval(int track, std::string_view name, std::string_view category, Seconds start, Seconds end,
                const std::string& arguments) {
    begin(name, "X", track);
    text_ += ",\"cat\":";
    append_text(text_, category);
    text_ += ",\"ts\":";
    append_number(text_, start.value * kMicroseconds);
    text_ += ",\"dur\":";
    append_number(text_, (end - start).value * kMicroseconds);
    text_ += ",\"args\":{" + arguments + "}}";
  }
  std::string finish() && {
    text_ += "\n]}\n";
    return std::move(text_);
  }

 private:
  void begin(std::string_view name, std::string_view phase, int track) {
    text_ += first_ ? "{\"name\":" : ",\n{\"name\":";
    first_ = false;
    append_text(text_, name);
    text_ += ",\"ph\":";
    append_text(text_, phase);
    text_ += ",\"pid\":0,\"tid\":" + std::to_string(track);
  }
  std::string text_;
  bool first_ = true;
};

constexpr std::string_view kCategory[] = {"forward", "backward", "backward input", "backward weight"};

std::string pass_arguments(const TimedPass& timed, const ScheduleShape& shape) {
  std::string out = "\"stage\":" + std::to_string(timed.stage) +
                    ",\"micro_batch\":" + std::to_string(timed.pass.unit / shape.parts + 1) +
                    ",\"chunk\":" + std::to_string(timed.pass.chunk + 1);
  if (shape.parts > 1) out += ",\"part\":" + std::to_string(timed.pass.unit % shape.parts + 1);
  if (timed.recompute.value > 0) {
    out += ",\"recompute_us\":";
    append_number(out, timed.recompute.value * kMicroseconds);
  }
  if (timed.pass.joined) out += ",\"overlapped_with_next\":true";
  return out;
}

}  // namespace

std::string trace_json(const ReplayResult& replay, std::string_view title) {
  const auto stages = replay.stages.size();
  Events events;
  events.name_process(title);

  // Events of one track must not cross, so transfers that overlap get tracks of their own below their stage's.
  std::vector<std::vector<TimedMessage>> received(stages);
  for (const TimedMessage& message : replay.messages) received[static_cast<std::size_t>(message.to)].push_back(message);
  int track = 0;
  std::vector<int> pass_track(stages);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    pass_track[stage] = track++;
    events.name_track(pass_track[stage], "stage " + std::to_string(stage));
    auto& messages = received[stage];
    std::sort(messages.begin(), messages.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
    std::vector<Seconds> lane_end;
    const int first_lane = track;
    for (const TimedMessage& message : messages) {
      const auto lane =
          std::find_if(lane_end.begin(), lane_end.end(), [&](Seconds end) { return end <= message.start; });
      const auto number = lane - lane_end.begin();
      if (lane == lane_end.end()) {
        lane_end.push_back(message.end);
        events.name_track(track++, "stage " + std::to_string(stage) + " receives" +
                                       (number > 0 ? " (" + std::to_string(number + 1) + ")" : ""));
      } else {
        *lane = message.end;
      }
      const bool activation = message.pass.kind == PassKind::forward;
      events.interval(
          first_lane + static_cast<int>(number),
          std::string(activation ? "activation" : "gradient") + " for " + pass_name(message.pass, replay.shape), "p2p",
          message.start, message.end,
          "\"from\":" + std::to_string(message.from) + ",\"to\":" + std::to_string(message.to));
    }
  }
  for (const TimedPass& timed : replay.timeline)
    events.interval(pass_track[static_cast<std::size_t>(timed.stage)], pass_name(timed.pass, replay.shape),
                    kCategory[static_cast<std::size_t>(timed.pass.kind)], timed.start, timed.end,
                    pass_arguments(timed, replay.shape));
  return std::move(events).finish();
}

}  // namespace nd
