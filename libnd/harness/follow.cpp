// SPDX-License-Identifier: Apache-2.0
#include "harness/follow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <thread>

#include "core/file.hpp"
#include "core/text.hpp"

namespace nd::harness {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr double kReadSeconds = 0.1;
constexpr double kCommandSeconds = 60;       ///< for a command of the batch system
constexpr std::size_t kTailBytes = 65536;    ///< of a log beyond its limit the end is kept
constexpr std::size_t kChunk = std::size_t{1} << 20U;

/// The output on the disk: its beginning up to the limit, and its end. A full disk cuts the file, not the run.
class CappedLog {
 public:
  CappedLog(const std::string& path, std::int64_t most) : out_(path, std::ios::binary | std::ios::trunc), left_(most) {}
  void write(std::string_view bytes) {
    const auto fits = static_cast<std::size_t>(std::min<std::int64_t>(left_, static_cast<std::int64_t>(bytes.size())));
    out_.write(bytes.data(), static_cast<std::streamsize>(fits));
    out_.flush();
    left_ -= static_cast<std::int64_t>(fits);
    bytes.remove_prefix(fits);
    dropped_ += bytes.size();
    tail_ += bytes;
    if (tail_.size() > 2 * kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  }
  void finish() {
    if (dropped_ > tail_.size()) out_ << "\n[nd_bench: " << dropped_ - tail_.size() << " bytes are not kept]\n";
    out_ << tail_;
    out_.flush();
  }
  [[nodiscard]] bool cut() const { return dropped_ > tail_.size() || !out_; }

 private:
  std::ofstream out_;
  std::int64_t left_ = 0;
  std::size_t dropped_ = 0;
  std::string tail_;
};

bool matches(std::string_view name, std::string_view pattern) {
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  const auto head = pattern.substr(0, star), tail = pattern.substr(star + 1);
  return name.size() >= head.size() + tail.size() && name.starts_with(head) && name.ends_with(tail);
}

/// What log files beside the standard output have got since the last look, line by line.
class LogFiles {
 public:
  LogFiles(std::string folder, Words patterns) : folder_(std::move(folder)), patterns_(std::move(patterns)) {}
  /// Files of an earlier attempt do not count.
  void skip_present() {
    for (const auto& path : paths()) {
      std::error_code failed;
      at_[path].offset = static_cast<std::int64_t>(fs::file_size(path, failed));
    }
  }
  bool read(StepLog& log, double clock_s, bool whole) {
    bool any = false;
    for (const auto& path : paths()) {
      auto& place = at_[path];
      std::ifstream in(path, std::ios::binary);
      in.seekg(place.offset);
      std::string block(kChunk, '\0');
      std::size_t budget = whole ? std::numeric_limits<std::size_t>::max() : 4 * kChunk;
      while (in && budget > 0) {
        in.read(block.data(), static_cast<std::streamsize>(block.size()));
        const auto got = static_cast<std::size_t>(in.gcount());
        if (got == 0) break;
        any = true;
        place.offset += static_cast<std::int64_t>(got);
        budget -= std::min(budget, got);
        place.partial.append(block.data(), got);
        const auto end = place.partial.rfind('\n');
        if (end != std::string::npos) {
          log.feed(std::string_view(place.partial).substr(0, end + 1), clock_s);
          place.partial.erase(0, end + 1);
        } else if (place.partial.size() > kChunk) {
          place.partial.clear();  // no log has such a line
        }
      }
      if (whole && !place.partial.empty()) log.feed(place.partial + "\n", clock_s);
      if (whole) place.partial.clear();
    }
    return any;
  }

 private:
  struct Place {
    std::int64_t offset = 0;
    std::string partial;
  };
  Words paths() const {
    Words out;
    if (patterns_.empty()) return out;
    std::error_code failed;
    for (fs::recursive_directory_iterator entry(folder_, failed), end; !failed && entry != end; entry.increment(failed)) {
      const auto name = entry->path().filename().string();
      if (std::any_of(patterns_.begin(), patterns_.end(), [&](const std::string& pattern) { return matches(name, pattern); })) out.push_back(entry->path().string());
    }
    std::sort(out.begin(), out.end());
    return out;
  }
  std::string folder_;
  Words patterns_;
  std::map<std::string, Place> at_;
};

/// Something that has been started and ends some day.
class Running {
 public:
  Running() = default;
  virtual ~Running() = default;
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  virtual bool read(std::string& to) = 0;  ///< waits a little; false: nothing came
  virtual bool ended() = 0;
  virtual bool began() = 0;                ///< no longer in a queue
  virtual void end(std::string& to) = 0;
  [[nodiscard]] virtual Ending ending() const = 0;
};

class LocalRunning : public Running {
 public:
  LocalRunning(Process process, double grace_s) : process_(std::move(process)), grace_s_(grace_s) {}
  bool read(std::string& to) override { return process_.read(to, kReadSeconds); }
  bool ended() override { return process_.ended(); }
  bool began() override { return true; }
  void end(std::string& to) override { process_.end(process_.ended() ? std::min(grace_s_, 2.0) : grace_s_, to); }
  [[nodiscard]] Ending ending() const override { return {process_.exit_code(), process_.signal(), Stop::none, std::nullopt}; }

 private:
  Process process_;
  double grace_s_;
};

/// A job of a batch system: its state is asked for, its output comes by files.
class BatchRunning : public Running {
 public:
  BatchRunning(const Launcher& launcher, Words environment, Values values) : launcher_(launcher), environment_(std::move(environment)), values_(std::move(values)) {}
  bool read(std::string& to) override {
    (void)to;
    std::this_thread::sleep_for(std::chrono::duration<double>(kReadSeconds));
    return false;
  }
  bool ended() override {
    if (!ended_ && Clock::now() >= next_) ask();
    return ended_;
  }
  bool began() override { return began_; }
  void end(std::string& to) override {
    (void)to;
    if (ended_) return;
    (void)output_of(filled(launcher_.cancel), environment_, kCommandSeconds);
    ended_ = true;
  }
  [[nodiscard]] Ending ending() const override { return ending_; }

 private:
  [[nodiscard]] Words filled(const Words& words) const {
    Words out;
    for (const auto& word : words) out.push_back(fill_in(word, values_));
    return out;
  }
  /// First line of the answer: the state, and behind a bar or a blank exit status and signal as "1:0".
  void ask() {
    next_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(launcher_.poll_s));
    const auto answer = output_of(filled(launcher_.poll), environment_, kCommandSeconds);
    if (!answer) return;  // the scheduler does not answer; the job may well go on
    const std::string line(core::trim(std::string_view(*answer).substr(0, answer->find('\n'))));
    const std::string state = line.substr(0, line.find_first_of(" |+"));
    if (state == "RUNNING") began_ = true;
    const auto known = launcher_.states.find(state);
    if (known == launcher_.states.end()) return;
    ended_ = began_ = true;
    if (succeeded(known->second)) {
      ending_.exit_code = 0;
      return;
    }
    ending_.scheduler = known->second;
    const auto bar = line.rfind('|');
    if (bar == std::string::npos) return;
    const auto code = core::split(line.substr(bar + 1), ':');
    if (const auto number = core::parse_integer(code[0]); number && *number > 0) ending_.exit_code = static_cast<int>(*number);
    if (const auto number = code.size() > 1 ? core::parse_integer(code[1]) : std::nullopt; number && *number > 0) ending_.signal = static_cast<int>(*number);
  }

  const Launcher& launcher_;
  Words environment_;
  Values values_;
  Clock::time_point next_{};
  bool ended_ = false, began_ = false;
  Ending ending_;
};

class Follower {
 public:
  explicit Follower(const FollowRequest& request)
      : request_(request), every_(steps_per_line()), log_(*request.profile, *request.failures, every_), files_(request.folder, request.launcher->logs) {}

  Result<RunResult> run() {
    if (auto problem = prepare()) return Error(std::move(*problem));
    RunResult result;
    result.command = launch_.command;
    start_ = Clock::now();
    auto running = begin();
    if (!running) {
      // What cannot be started is the run's failure: the next one may have another program.
      result.status = RunStatus::launch_failed;
      result.reason = running.error().diagnostics.front().where.path + ": " + running.error().diagnostics.front().message;
      return result;
    }
    watch(**running);
    auto ending = (*running)->ending();
    ending.stop = stop_;
    result.steps = step_statistics(log_, *request_.run, request_.campaign->measure, every_);
    const auto judgement = judge(ending, log_, result.steps.n >= request_.campaign->measure.least);
    result.status = judgement.status;
    result.reason = judgement.reason;
    result.exit_code = ending.exit_code;
    result.signal = ending.signal;
    result.seconds = elapsed();
    describe_log(log_, *request_.run, result);
    if (kept_->cut()) result.flags.emplace_back("log_cut");
    return result;
  }

 private:
  [[nodiscard]] double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  [[nodiscard]] std::int64_t steps_per_line() const {
    const auto stated = fact_number(*request_.run, request_.profile->every);
    return stated && *stated >= 1 ? static_cast<std::int64_t>(*stated) : 1;
  }

  std::optional<Diagnostic> prepare() {
    LaunchPlace place{request_.folder, request_.options->devices, free_port()};
    const auto wanted = static_cast<std::size_t>(request_.run->devices);
    if (place.devices.empty())
      for (std::size_t i = 0; i < wanted; ++i) place.devices.push_back(std::to_string(i));
    place.devices.resize(std::min(place.devices.size(), wanted));
    auto launch = make_launch(*request_.launcher, *request_.campaign, *request_.run, place);
    if (!launch) return launch.error().diagnostics.front();
    launch_ = std::move(*launch);
    const Values at_run{{"run_dir", request_.folder}, {"id", request_.run->id}, {"port", std::to_string(place.port)}, {"device_list", launch_.values["device_list"]}};
    for (const auto& file : request_.run->files)
      if (auto problem = core::write_file(request_.folder + "/" + file.name, fill_in(file.text, at_run))) return problem;
    if (auto problem = core::write_file(request_.folder + "/command.sh", script())) return problem;
    kept_ = std::make_unique<CappedLog>(request_.folder + "/attempt-" + std::to_string(request_.number) + ".log", request_.campaign->limits.log_bytes);
    if (request_.job.empty()) files_.skip_present();
    if (request_.launcher->batch() && request_.job.empty()) return core::write_file(request_.folder + "/job.sh", launch_.script);
    return std::nullopt;
  }

  /// Reproduces the run: where, with what, how.
  [[nodiscard]] std::string script() const {
    std::string out = "#!/bin/sh\n# run " + request_.run->id + ": " + request_.run->name + "\n";
    std::error_code failed;
    out += "cd " + shell_quoted(fs::current_path(failed).string()) + "\n";
    for (const auto& [name, value] : launch_.environment) out += "export " + name + "=" + shell_quoted(value) + "\n";
    for (const auto& word : launch_.command) out += (&word == &launch_.command.front() ? "" : " ") + shell_quoted(word);
    return out + "\n";
  }

  [[nodiscard]] Words environment() const {
    Words out;
    for (const auto& entry : request_.options->environment) {
      const auto name = entry.substr(0, entry.find('='));
      if (std::none_of(launch_.environment.begin(), launch_.environment.end(), [&](const auto& added) { return added.first == name; })) out.push_back(entry);
    }
    // Of a name that the launcher and the run both state, the run's value counts.
    std::map<std::string, std::string> added;
    for (const auto& [name, value] : launch_.environment) added[name] = value;
    for (const auto& [name, value] : added) out.push_back(name + "=" + value);
    return out;
  }

  Result<std::unique_ptr<Running>> begin() {
    if (!request_.launcher->batch()) {
      auto process = Process::start({launch_.command, environment(), request_.mark});
      if (!process) return process.error();
      return std::unique_ptr<Running>(std::make_unique<LocalRunning>(std::move(*process), request_.campaign->limits.grace_s));
    }
    std::string job = request_.job;
    launch_.values["script"] = request_.folder + "/job.sh";
    if (job.empty()) {
      Words submit;
      for (const auto& word : request_.launcher->submit) submit.push_back(fill_in(word, launch_.values));
      const auto answer = output_of(submit, environment(), kCommandSeconds);
      if (answer) job = std::string(core::trim(std::string_view(*answer).substr(0, answer->find_first_of(";\n"))));
      if (job.empty()) return make_error(Errc::io, {{}, 0, 0, submit.front()}, "did not take the job");
      if (auto problem = request_.on_job(job)) return Error(std::move(*problem));
    }
    launch_.values["job"] = job;
    return std::unique_ptr<Running>(std::make_unique<BatchRunning>(*request_.launcher, environment(), launch_.values));
  }

  void take(std::string& output) {
    kept_->write(output);
    log_.feed(output, elapsed());
    output.clear();
  }

  void watch(Running& running) {
    std::string output;
    double heard = 0, began = -1;
    while (!running.ended() && stop_ == Stop::none) {
      bool news = running.read(output);
      take(output);
      news = files_.read(log_, elapsed(), false) || news;
      if (news) heard = elapsed();
      if ((running.began() || news) && began < 0) began = heard = elapsed();
      stop_ = why_stop(began < 0 ? 0 : elapsed() - began, began < 0 ? 0 : elapsed() - heard);
    }
    running.end(output);
    take(output);
    (void)files_.read(log_, elapsed(), true);
    log_.finish(elapsed());
    kept_->finish();
  }

  [[nodiscard]] Stop why_stop(double running_s, double silent_s) const {
    const auto& limits = request_.campaign->limits;
    const auto& rule = request_.campaign->measure;
    if (request_.options->stop && request_.options->stop()) return Stop::user;
    if (rule.enough > 0 && std::ssize(log_.steps()) * every_ >= rule.warmup + rule.enough &&
        step_statistics(log_, *request_.run, rule, every_).n >= rule.enough)
      return Stop::enough;
    if (limits.total_s > 0 && running_s > limits.total_s) return Stop::total;
    if (limits.start_s > 0 && running_s > limits.start_s && log_.steps().empty()) return Stop::start;
    if (limits.stall_s > 0 && silent_s > limits.stall_s) return Stop::stall;
    return Stop::none;
  }

  const FollowRequest& request_;
  std::int64_t every_;
  StepLog log_;
  LogFiles files_;
  Launch launch_;
  std::unique_ptr<CappedLog> kept_;
  Clock::time_point start_{};
  Stop stop_ = Stop::none;
};

}  // namespace

Result<RunResult> follow(const FollowRequest& request) { return Follower(request).run(); }

}  // namespace nd::harness
