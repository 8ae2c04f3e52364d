// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>

#include "nd/schedule.hpp"

namespace nd {

namespace {

// Pixels.
constexpr double kLeft = 78, kRight = 170, kTop = 92, kRow = 26, kGap = 8, kAxis = 46, kLegendLine = 18;
constexpr double kNarrowestPlot = 900, kWidestPlot = 2600, kWantedBlock = 12;
constexpr double kDigit = 6.2, kLabelHeight = 4;  // width of a digit and half height of capitals at 11 px

struct Colour {
  double r, g, b;
};
// Blue, green, teal and orange stay apart for the colour-blind; kinds differ in lightness too.
constexpr std::array<Colour, 4> kKindColour{{{47, 103, 177}, {38, 127, 82}, {22, 138, 145}, {217, 134, 30}}};
constexpr std::array<std::string_view, 4> kKindName{"forward (F)", "backward (B)", "backward, input half (Bi)",
                                                    "backward, weight half (W)"};
constexpr std::string_view kRecomputeColour = "#7d5fb2", kReceiveColour = "#555b66", kIdleColour = "#eceef2",
                           kInk = "#1d2430";

/// Later chunks are lighter.
std::string shade(PassKind kind, int chunk, int chunks) {
  const Colour base = kKindColour[static_cast<std::size_t>(kind)];
  const double white = chunks > 1 ? 0.58 * chunk / (chunks - 1) : 0.0;
  const auto mix = [white](double channel) { return static_cast<int>(std::lround(channel + (255 - channel) * white)); };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(base.r), mix(base.g), mix(base.b));
}
bool is_light(int chunk, int chunks) { return chunks > 1 && 2 * chunk > chunks - 1; }

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// Largest of 1, 2, 5 times a power of ten that gives at least six ticks.
double tick_step(double length) {
  const double rough = length / 6, power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {5.0, 2.0})
    if (factor * power <= rough) return factor * power;
  return power;
}

struct TimeUnit {
  double seconds;
  std::string_view name;
};
TimeUnit unit_for(double length) {
  if (length >= 2) return {1, "s"};
  if (length >= 2e-3) return {1e-3, "ms"};
  return {1e-6, "\xc2\xb5s"};
}

class Drawing {
 public:
  explicit Drawing(const ReplayResult& replay) : replay_(replay) {
    std::size_t most = 1;
    std::map<int, std::size_t> count;
    for (const TimedPass& timed : replay.timeline) {
      most = std::max(most, ++count[timed.stage]);
      chunks_ = std::max(chunks_, timed.pass.chunk + 1);
      used_[static_cast<std::size_t>(timed.pass.kind)] = true;
      recompute_ = recompute_ || timed.recompute.value > 0;
      joined_ = joined_ || timed.pass.joined;
    }
    plot_ =
        std::clamp(static_cast<double>(most) *
                       (kWantedBlock + kDigit * static_cast<double>(std::to_string(replay.shape.micro_batches).size())),
                   kNarrowestPlot, kWidestPlot);
    scale_ = replay.makespan.value > 0 ? plot_ / replay.makespan.value : 0;
  }

  std::string draw(std::string_view title) {
    legend();
    const std::string legend_lines = std::move(out_);
    out_.clear();
    top_ = kTop + legend_down_;
    bottom_ = top_ + static_cast<double>(replay_.stages.size()) * (kRow + kGap);
    const double width = kLeft + plot_ + kRight, height = bottom_ + kAxis;
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" "
        "role=\"img\" "
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\" fill=\"{}\">\n",
        width, height, width, height, kInk);
    put("<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n", escaped(title));
    heading(title);
    out_ += legend_lines;
    rows();
    passes();
    receives();
    axis();
    out_ += "</svg>\n";
    return std::move(out_);
  }

 private:
  template <class... Arguments>
  void put(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }
  [[nodiscard]] double x(Seconds time) const { return kLeft + time.value * scale_; }
  [[nodiscard]] double y(int stage) const { return top_ + stage * (kRow + kGap); }

  void heading(std::string_view title) {
    const TimeUnit unit = unit_for(replay_.makespan.value);
    put("<text x=\"12\" y=\"22\" font-size=\"15\" font-weight=\"bold\">{}</text>\n", escaped(title));
    put("<text x=\"12\" y=\"40\">{} stages, {} micro-batches. The pipeline takes {:.4g} {}; stages wait {:.1f} % of it "
        "on average. "
        "Numbers in the blocks are micro-batches; grey is waiting.</text>\n",
        replay_.stages.size(), replay_.shape.micro_batches, replay_.makespan.value / unit.seconds, unit.name,
        100 * replay_.bubble_fraction());
  }

  /// Entries that belong together go to the next line together when they do not fit.
  void make_room(double& at, double width) {
    if (at <= 12 || at + width <= kLeft + plot_ + kRight) return;
    at = 12;
    legend_down_ += kLegendLine;
  }
  [[nodiscard]] static double entry_width(std::string_view text) { return 19 + kDigit * static_cast<double>(text.size()) + 16; }
  void legend_entry(double& at, std::string_view colour, std::string_view text) {
    make_room(at, entry_width(text));
    put("<rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"14\" height=\"12\" fill=\"{}\" stroke=\"#b9bfca\" stroke-width=\"0.5\"/>"
        "<text x=\"{:.1f}\" y=\"{:.0f}\">{}</text>\n",
        at, 52 + legend_down_, colour, at + 19, 62 + legend_down_, text);
    at += entry_width(text);
  }
  void legend() {
    double at = 12;
    for (std::size_t kind = 0; kind < used_.size(); ++kind)
      if (used_[kind]) legend_entry(at, shade(static_cast<PassKind>(kind), 0, chunks_), kKindName[kind]);
    if (recompute_) legend_entry(at, kRecomputeColour, "recompute");
    if (!replay_.messages.empty()) legend_entry(at, kReceiveColour, "receiving");
    legend_entry(at, kIdleColour, "waiting");
    if (joined_) {
      constexpr std::string_view kText = "forward and backward overlapped";
      make_room(at, entry_width(kText));
      put("<rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"14\" height=\"12\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.2\"/>",
          at, 52 + legend_down_, kInk);
      legend_entry(at, "none", kText);
    }
    if (chunks_ > 1) {
      constexpr double kHeading = 158;
      make_room(at, kHeading + chunks_ * entry_width("1"));
      put("<text x=\"{:.1f}\" y=\"{:.0f}\">model chunk, dark to light:</text>\n", at, 62 + legend_down_);
      at += kHeading;
      for (int chunk = 0; chunk < chunks_; ++chunk)
        legend_entry(at, shade(PassKind::forward, chunk, chunks_), std::to_string(chunk + 1));
    }
  }

  void rows() {
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#5a6372\">waits</text>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#5a6372\">holds at most</text>\n",
        kLeft + plot_ + 56, top_ - 8, kLeft + plot_ + 156, top_ - 8);
    for (std::size_t n = 0; n < replay_.stages.size(); ++n) {
      const int stage = static_cast<int>(n);
      const StageReplay& s = replay_.stages[n];
      const double middle = y(stage) + kRow / 2 + kLabelHeight;
      const double share = replay_.makespan.value > 0 ? 100 * (s.bubble / replay_.makespan) : 0;
      put("<text x=\"12\" y=\"{:.1f}\" font-weight=\"bold\">stage {}</text>"
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>",
          middle, stage, kLeft, y(stage), plot_, kRow, kIdleColour);
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.1f} %</text><text x=\"{:.1f}\" y=\"{:.1f}\" "
          "text-anchor=\"end\">{:.4g} {}</text>\n",
          kLeft + plot_ + 56, middle, share, kLeft + plot_ + 156, middle, s.held.together,
          chunks_ > 1 ? (s.held.together > 1 ? "chunks" : "chunk") : (s.held.together > 1 ? "micro-batches" : "micro-batch"));
    }
  }

  void box(std::string& path, int stage, Seconds start, Seconds end) {
    fmt::format_to(std::back_inserter(path), "M{:.2f} {:.1f}h{:.2f}v{:.0f}h{:.2f}z", x(start), y(stage),
                   (end - start).value * scale_, kRow, -(end - start).value * scale_);
  }

  // One path per colour keeps a step of ten thousand passes small.
  void passes() {
    std::map<std::string, std::string> boxes;
    std::string recompute, joined, dark, light;
    for (std::size_t n = 0; n < replay_.timeline.size(); ++n) {
      const TimedPass& timed = replay_.timeline[n];
      if (timed.pass.joined) box(joined, timed.stage, timed.start, replay_.timeline[n + 1].end);
      box(boxes[shade(timed.pass.kind, timed.pass.chunk, chunks_)], timed.stage, timed.start, timed.end);
      if (timed.recompute.value > 0) box(recompute, timed.stage, timed.start, timed.start + timed.recompute);
      const std::string label = std::to_string(timed.pass.unit / replay_.shape.parts + 1);
      if ((timed.end - timed.start).value * scale_ < kDigit * static_cast<double>(label.size()) + 2) continue;
      fmt::format_to(std::back_inserter(is_light(timed.pass.chunk, chunks_) ? light : dark),
                     "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", (x(timed.start) + x(timed.end)) / 2,
                     y(timed.stage) + kRow / 2 + kLabelHeight, label);
    }
    for (const auto& [colour, path] : boxes)
      put("<path fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"0.6\" d=\"{}\"/>\n", colour, path);
    if (!recompute.empty()) put("<path fill=\"{}\" d=\"{}\"/>\n", kRecomputeColour, recompute);
    if (!joined.empty()) put("<path fill=\"none\" stroke=\"{}\" stroke-width=\"1.2\" d=\"{}\"/>\n", kInk, joined);
    if (!dark.empty()) put("<g fill=\"#ffffff\" text-anchor=\"middle\">{}</g>\n", dark);
    if (!light.empty()) put("<g fill=\"{}\" text-anchor=\"middle\">{}</g>\n", kInk, light);
  }

  // A strip under the receiver's row.
  void receives() {
    std::string path;
    for (const TimedMessage& message : replay_.messages) {
      // A short one keeps a pixel to be seen by.
      const double width = std::max(1.0, (message.end - message.start).value * scale_);
      fmt::format_to(std::back_inserter(path), "M{:.2f} {:.1f}h{:.2f}v3h{:.2f}z", x(message.end) - width,
                     y(message.to) + kRow + 1, width, -width);
    }
    if (!path.empty()) put("<path fill=\"{}\" d=\"{}\"/>\n", kReceiveColour, path);
  }

  void axis() {
    const double length = replay_.makespan.value;
    if (length <= 0) return;
    const TimeUnit unit = unit_for(length);
    const double step = tick_step(length);
    put("<g stroke=\"#8b93a1\"><path d=\"M{:.1f} {:.1f}h{:.1f}\"/></g>\n", kLeft, bottom_ + 4, plot_);
    for (int n = 0; n * step <= length * (1 + 1e-9); ++n) {
      const double at = x({n * step});
      put("<path stroke=\"#8b93a1\" d=\"M{:.1f} {:.1f}v5\"/><text x=\"{:.1f}\" y=\"{:.1f}\" "
          "text-anchor=\"middle\">{:.6g}</text>\n",
          at, bottom_ + 4, at, bottom_ + 21, n * step / unit.seconds);
    }
    put("<text x=\"{:.1f}\" y=\"{:.1f}\">time from the start of the step ({})</text>\n", kLeft, bottom_ + 38,
        unit.name);
  }

  const ReplayResult& replay_;
  int chunks_ = 1;
  std::array<bool, 4> used_{};
  bool recompute_ = false, joined_ = false;
  double plot_ = 0, top_ = kTop, bottom_ = 0, scale_ = 0;
  double legend_down_ = 0;  ///< how far lines of the legend after the first push the rows
  std::string out_;
};

}  // namespace

std::string timeline_svg(const ReplayResult& replay, std::string_view title) { return Drawing(replay).draw(title); }

}  // namespace nd
