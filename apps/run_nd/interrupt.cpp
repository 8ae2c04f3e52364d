// SPDX-License-Identifier: Apache-2.0
#include "interrupt.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>

namespace run_nd {

Interrupt::Interrupt() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  // A shell that starts a job in the background has it ignore SIGINT; so it stays.
  struct sigaction now {};
  if (sigaction(SIGINT, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&signals_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  waiter_ = std::jthread([this](const std::stop_token& over) { wait(over); });
}

Interrupt::~Interrupt() {
  waiter_.request_stop();
  // Wakes the waiter: the signal is blocked everywhere, so that only it takes it.
  pthread_kill(waiter_.native_handle(), SIGTERM);
  waiter_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Interrupt::wait(const std::stop_token& over) {
  int taken = 0;
  if (sigwait(&signals_, &taken) != 0 || over.stop_requested()) return;
  std::fputs("stopping: what was found so far follows; once more ends at once\n", stderr);
  asked_.request_stop();
  if (sigwait(&signals_, &taken) != 0 || over.stop_requested()) return;
  constexpr int kSignalled = 128;
  _exit(kSignalled + taken);
}

}  // namespace run_nd
