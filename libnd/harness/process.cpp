// SPDX-License-Identifier: Apache-2.0
#include "harness/process.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include "core/text.hpp"

namespace nd::harness {

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kKillSeconds = 10;  ///< a killed process is gone within milliseconds unless the kernel holds it
constexpr double kPollSeconds = 0.05;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }
void rest() { std::this_thread::sleep_for(std::chrono::duration<double>(kPollSeconds)); }

Words prepared(const ProcessRequest& request) {
  Words out;
  const std::string mark = std::string(kMark) + "=";
  for (const auto& entry : request.environment)
    if (request.mark.empty() || !entry.starts_with(mark)) out.push_back(entry);
  if (!request.mark.empty()) out.push_back(mark + request.mark);
  return out;
}

std::vector<char*> pointers(Words& words) {
  std::vector<char*> out;
  for (auto& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

/// Attributes and file actions of a start; released with the object.
class SpawnPlan {
 public:
  explicit SpawnPlan(int output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
    posix_spawnattr_init(&attributes_);
    sigset_t none, usual;
    sigemptyset(&none);
    sigfillset(&usual);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &usual);
    posix_spawnattr_setflags(&attributes_, static_cast<short>(POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  [[nodiscard]] const posix_spawn_file_actions_t* actions() const { return &actions_; }
  [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

bool marked(const std::filesystem::path& folder, std::string_view mark) {
  std::ifstream in(folder / "environ", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::string wanted = std::string(kMark) + "=" + std::string(mark);
  for (std::size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1))
    if (at == 0 || text[at - 1] == '\0') return true;
  return false;
}

}  // namespace

Result<Process> Process::start(const ProcessRequest& request) {
  const auto fail = [&](int code) {
    return make_error(Errc::io, {{}, 0, 0, request.command.empty() ? "command" : request.command.front()}, std::string("cannot be started: ") + std::strerror(code));
  };
  std::array<int, 2> ends{};
  if (request.command.empty()) return fail(ENOENT);
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail(errno);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  Words command = request.command, environment = prepared(request);
  auto words = pointers(command), variables = pointers(environment);
  pid_t pid = -1;
  const SpawnPlan plan(ends[1]);
  const int code = posix_spawnp(&pid, command.front().c_str(), plan.actions(), plan.attributes(), words.data(), variables.data());
  close(ends[1]);
  if (code != 0) {
    close(ends[0]);
    return fail(code);
  }
  return Process(pid, ends[0], request.mark);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), output_(std::exchange(other.output_, -1)), mark_(std::move(other.mark_)), exit_code_(other.exit_code_),
      signal_(other.signal_), ended_(other.ended_) {}

Process::~Process() {
  if (pid_ > 0) {
    std::string dropped;
    end(0, dropped);
  }
  if (output_ >= 0) close(output_);
}

bool Process::read(std::string& to, double seconds) {
  constexpr std::size_t kMost = std::size_t{1} << 20U;
  if (output_ < 0) {
    rest();
    return false;
  }
  pollfd wait{output_, POLLIN, 0};
  if (poll(&wait, 1, static_cast<int>(seconds * 1e3)) <= 0) return false;
  std::array<char, 65536> block{};
  std::size_t got = 0;
  while (got < kMost) {
    const ssize_t n = ::read(output_, block.data(), block.size());
    if (n > 0) {
      to.append(block.data(), static_cast<std::size_t>(n));
      got += static_cast<std::size_t>(n);
    } else if (n == 0) {  // everybody has closed it
      close(output_);
      output_ = -1;
      break;
    } else if (errno != EINTR) {
      break;
    }
  }
  return got > 0;
}

bool Process::ended() {
  if (ended_ || pid_ <= 0) return true;
  int status = 0;
  const pid_t found = waitpid(pid_, &status, WNOHANG);
  if (found == 0 || (found < 0 && errno == EINTR)) return false;
  ended_ = true;
  if (found == pid_ && WIFEXITED(status)) exit_code_ = WEXITSTATUS(status);
  else if (found == pid_ && WIFSIGNALED(status)) signal_ = WTERMSIG(status);
  return true;
}

void Process::send(int number) const {
  kill(-pid_, number);
  if (!mark_.empty()) signal_marked(mark_, number);
}

void Process::end(double grace_s, std::string& to) {
  // Groups of zombies that nobody reaps look alive; marks do not.
  const auto gone = [this] { return ended() && (mark_.empty() || signal_marked(mark_, 0) == 0); };
  const auto wait = [&](double seconds) {
    const auto start = Clock::now();
    while (!gone() && since(start) < seconds)
      if (!read(to, kPollSeconds)) rest();
    return gone();
  };
  if (!gone()) {
    send(SIGTERM);
    if (!wait(grace_s)) {
      const auto start = Clock::now();
      do send(SIGKILL);  // what forks while it is being killed is met in the next round
      while (!wait(kPollSeconds) && since(start) < kKillSeconds);
    }
  }
  kill(-pid_, SIGKILL);  // whoever has hidden the mark
  while (read(to, 0)) continue;
  pid_ = -1;
}

std::size_t signal_marked(std::string_view mark, int number) {
  namespace fs = std::filesystem;
  std::size_t count = 0;
  std::error_code failed;
  for (fs::directory_iterator entry("/proc", failed), end; !failed && entry != end; entry.increment(failed)) {
    const auto pid = core::parse_integer(entry->path().filename().string());
    if (!pid || *pid <= 1 || *pid == getpid() || !marked(entry->path(), mark)) continue;
    ++count;
    if (number != 0) kill(static_cast<pid_t>(*pid), number);
  }
  return count;
}

std::size_t kill_marked(std::string_view mark, double seconds) {
  const auto start = Clock::now();
  std::size_t left = signal_marked(mark, SIGKILL);
  while (left > 0 && since(start) < seconds) {
    rest();
    left = signal_marked(mark, SIGKILL);
  }
  return left;
}

int free_port() {
  const int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (handle < 0) return 0;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  void* const place = &address;
  int port = 0;
  if (bind(handle, static_cast<const sockaddr*>(place), size) == 0 && getsockname(handle, static_cast<sockaddr*>(place), &size) == 0) port = ntohs(address.sin_port);
  close(handle);
  return port;
}

std::optional<std::string> output_of(const Words& command, const Words& environment, double seconds) {
  auto process = Process::start({command, environment, {}});
  if (!process) return std::nullopt;
  const auto start = Clock::now();
  std::string out;
  while (!process->ended() && since(start) < seconds) process->read(out, kPollSeconds);
  const bool well = process->ended() && process->exit_code() == 0;
  process->end(0, out);
  return well ? std::optional(out) : std::nullopt;
}

}  // namespace nd::harness
