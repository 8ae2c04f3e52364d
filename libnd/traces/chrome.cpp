// SPDX-License-Identifier: Apache-2.0
#include "traces/chrome.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "core/text.hpp"
#include "traces/event_reader.hpp"

namespace nd::traces {

namespace {

constexpr std::string_view kStepPrefix = "ProfilerStep#";

/// Texts by number; addresses of Python objects are cut off so that a name occurs once.
class Names {
 public:
  std::uint32_t add(const std::string& name) {
    const auto address = name.find(" at 0x");
    const std::string text = address == std::string::npos ? name : name.substr(0, address);
    const auto [found, added] = numbers_.emplace(text, static_cast<std::uint32_t>(texts_.size()));
    if (added) texts_.push_back(&found->first);
    return found->second;
  }
  [[nodiscard]] const std::string& text(std::uint32_t number) const { return *texts_[number]; }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<const std::string*> texts_;
};

/// What an event is for the account of a step.
enum class Role : std::uint32_t { frame, op, wait };

/// 24 bytes: what is kept of every event that matters.
struct Event {
  std::int64_t begin = 0;
  std::int64_t duration = 0;
  std::uint32_t name = 0;
  Role role = Role::frame;
  [[nodiscard]] std::int64_t end() const { return begin + duration; }
};

struct Step {
  std::int64_t number = 0, begin = 0, end = 0;
};

struct Thread {
  std::vector<Step> steps;
  std::vector<Event> events;
};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Frames that say in which phase the operators below them run; earlier entries are looked for first in a frame.
std::optional<ComputePhase> phase_of(std::string_view frame) {
  if (contains(frame, "recompute") || contains(frame, "unpack_hook") || contains(frame, "checkpoint.py")) return ComputePhase::recompute;
  if (contains(frame, "Optimizer.step") || contains(frame, "torch/optim/") || contains(frame, "optimizer_step")) return ComputePhase::optimizer;
  if (contains(frame, "autograd::engine") || contains(frame, "backward")) return ComputePhase::backward;
  if (contains(frame, "forward") || contains(frame, "nn.Module:")) return ComputePhase::forward;
  return std::nullopt;
}

/// A call that blocks the thread until a collective is through.
bool blocks(std::string_view name) {
  if (name.starts_with("c10d::") || name == "Work.wait") return true;
  if (contains(name, "wait of torch._C._distributed_c10d.Work")) return true;
  return contains(name, "distributed_c10d.py") && (contains(name, ": wait") || contains(name, ": barrier"));
}

/// Made by c10d inside its calls; says what was moved.
constexpr std::string_view kRecord = "record_param_comms";

std::optional<Role> role_of(const TraceEvent& event) {
  if (blocks(event.name)) return Role::wait;
  if (event.category == "cpu_op" && event.name.starts_with("aten::")) return Role::op;
  if (phase_of(event.name) || names_site(event.name)) return Role::frame;
  return std::nullopt;
}

class ChromeTrace {
 public:
  explicit ChromeTrace(const std::string& path) : path_(path) {}

  Result<std::vector<ClassifiedStep>> run() {
    // Steps may stand behind the events they hold: events are kept for every thread, and those of threads without steps dropped.
    if (auto problem = read_events(path_, [this](const TraceEvent& event) { event.name.starts_with(kStepPrefix) ? add_step(event) : add_event(event); }))
      return Error(*std::move(problem));
    if (std::none_of(threads_.begin(), threads_.end(), [](const auto& entry) { return !entry.second.steps.empty(); }))
      return make_error(Errc::missing_field, {path_, 0, 0, std::string(kStepPrefix)}, "no step is marked in the trace", "call prof.step() after every step");
    if (bad_ > 0)
      return make_error(Errc::syntax, {path_, 0, 0, {}}, std::to_string(bad_) + " events have no readable ts and dur");
    std::vector<ClassifiedStep> out;
    for (auto& [name, thread] : threads_) {
      if (thread.steps.empty()) continue;
      sort_events(thread.events);
      std::sort(thread.steps.begin(), thread.steps.end(), [](const Step& a, const Step& b) { return a.begin < b.begin; });
      Enclosing around(thread.events);
      for (const Step& step : thread.steps) out.push_back(classify(step, thread.events, around.at(step.begin)));
    }
    return out;
  }

 private:
  static std::string key(const TraceEvent& event) { return event.process + "/" + event.thread; }

  void add_step(const TraceEvent& event) {
    // The device shows a copy of the mark on a stream.
    if (contains(event.category, "gpu")) return;
    const auto begin = nanoseconds(event.begin), duration = nanoseconds(event.duration);
    const auto number = core::parse_integer(std::string_view(event.name).substr(kStepPrefix.size()));
    if (begin && duration && number) threads_[key(event)].steps.push_back({*number, *begin, *begin + *duration});
    else ++bad_;
  }

  void add_event(const TraceEvent& event) {
    // Everything else is of the device, the memory or the arrows between them.
    if (event.category != "cpu_op" && event.category != "python_function" && event.category != "user_annotation") return;
    if (event.name == kRecord && event.bytes > 0)
      if (const auto begin = nanoseconds(event.begin)) bytes_[*begin] += event.bytes;
    const std::uint32_t name = names_.add(event.name);
    if (name == roles_.size()) roles_.push_back(role_of(event));
    const auto role = roles_[name];
    if (!role) return;
    const auto begin = nanoseconds(event.begin), duration = nanoseconds(event.duration);
    if (!begin || !duration) {
      ++bad_;
      return;
    }
    threads_[key(event)].events.push_back({*begin, *duration, name, *role});
  }

  /// Outer before inner.
  static void sort_events(std::vector<Event>& events) {
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.begin != b.begin ? a.begin < b.begin : a.duration > b.duration; });
  }

  /// Frames that began before a step and are open when it begins: the trainer's loop. Asked for steps in order.
  class Enclosing {
   public:
    explicit Enclosing(const std::vector<Event>& events) : events_(events), next_(events.begin()) {}
    const std::vector<const Event*>& at(std::int64_t time) {
      for (; next_ != events_.end() && next_->begin < time; ++next_)
        if (next_->role == Role::frame && next_->end() > time) open_.push_back(&*next_);
      open_.erase(std::remove_if(open_.begin(), open_.end(), [time](const Event* frame) { return frame->end() <= time; }), open_.end());
      return open_;
    }

   private:
    const std::vector<Event>& events_;
    std::vector<Event>::const_iterator next_;
    std::vector<const Event*> open_;
  };

  ClassifiedStep classify(const Step& step, const std::vector<Event>& events, const std::vector<const Event*>& around) {
    ClassifiedStep out;
    out.file = path_;
    out.rank = rank_in_name(path_).value_or(0);
    out.step = step.number;
    out.time_ns = step.end - step.begin;
    std::vector<const Event*> open = around;  // frames around the event at hand
    std::int64_t covered = step.begin;  // end of the outermost wait or operator so far
    auto at = std::lower_bound(events.begin(), events.end(), step.begin, [](const Event& event, std::int64_t time) { return event.begin < time; });
    for (; at != events.end() && at->begin < step.end; ++at) {
      while (!open.empty() && open.back()->end() <= at->begin) open.pop_back();
      if (at->role == Role::frame) {
        open.push_back(&*at);
        continue;
      }
      if (at->end() <= covered) continue;  // inside a wait or an operator that is counted
      const std::int64_t from = std::max(covered, at->begin), to = std::min(at->end(), step.end);
      covered = to;
      if (at->role == Role::wait) add_wait(*at, to - from, open, out);
      else out.compute_ns[static_cast<std::size_t>(phase(open))] += to - from - waits_inside(at, events, open, out);
    }
    out.idle_ns = out.time_ns - out.compute_total() - out.unclassified_ns;
    for (const std::int64_t wait : out.wait_ns) out.idle_ns -= wait;
    return out;
  }

  /// Waits of an operator that calls collectives: they are waits, the rest of it is compute. Returns their time.
  std::int64_t waits_inside(std::vector<Event>::const_iterator op, const std::vector<Event>& events, const std::vector<const Event*>& open, ClassifiedStep& out) {
    std::int64_t sum = 0, covered = op->begin;
    for (auto inner = std::next(op); inner != events.end() && inner->begin < op->end(); ++inner) {
      if (inner->role != Role::wait || inner->end() <= covered) continue;
      const std::int64_t time = std::min(inner->end(), op->end()) - std::max(inner->begin, covered);
      add_wait(*inner, time, open, out);
      covered = inner->end();
      sum += time;
    }
    return sum;
  }

  [[nodiscard]] ComputePhase phase(const std::vector<const Event*>& open) const {
    for (auto frame = open.rbegin(); frame != open.rend(); ++frame)
      if (const auto phase = phase_of(names_.text((*frame)->name))) return *phase;
    return ComputePhase::other;
  }

  void add_wait(const Event& wait, std::int64_t time, const std::vector<const Event*>& open, ClassifiedStep& out) {
    std::vector<std::string_view> frames;
    for (auto frame = open.rbegin(); frame != open.rend(); ++frame) frames.push_back(names_.text((*frame)->name));
    const std::string& name = names_.text(wait.name);
    // Work.wait does not say what it waits for; a frame around it does.
    std::string collective = name;
    for (const std::string_view frame : frames) collective += " " + std::string(frame);
    const auto kind = wait_by_site(frames, collective);
    if (kind) out.wait_ns[static_cast<std::size_t>(*kind)] += time;
    else out.unclassified_ns += time;
    const auto site = std::find_if(frames.begin(), frames.end(), [](std::string_view frame) { return names_site(frame); });
    CallSite& entry = out.sites[(site == frames.end() ? std::string("(no site)") : std::string(*site)) + " | " + name];
    entry.time_ns += time;
    ++entry.calls;
    entry.wait = kind ? std::string(to_text(*kind)) : "unclassified";
    for (auto moved = bytes_.lower_bound(wait.begin); moved != bytes_.end() && moved->first < wait.end(); ++moved) entry.bytes += moved->second;
  }

  const std::string& path_;
  Names names_;
  std::vector<std::optional<Role>> roles_;  ///< by name
  std::map<std::string, Thread> threads_;
  std::map<std::int64_t, double> bytes_;  ///< of recorded collectives, by begin
  std::int64_t bad_ = 0;
};

}  // namespace

Result<std::vector<ClassifiedStep>> classify_chrome(const std::string& path) { return ChromeTrace(path).run(); }

}  // namespace nd::traces
