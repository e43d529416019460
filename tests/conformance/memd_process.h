// SPDX-License-Identifier: GPL-2.0-or-later
// nfsrdma-memd as a process of its own, for tests: started with free ports, ended with SIGTERM.
// The environment variable NFSRDMA_MEMD says where it is.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace nfsrdma::testing {

class MemdProcess {
 public:
  explicit MemdProcess(std::vector<std::string> arguments = {}) {
    const char* path = std::getenv("NFSRDMA_MEMD");
    if (path == nullptr) {
      ADD_FAILURE() << "NFSRDMA_MEMD is not set";
      return;
    }
    arguments.insert(arguments.begin(), {path, "--capacity", "256m"});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    int out[2];
    if (pipe2(out, O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    if (posix_spawn(&pid_, path, &actions, nullptr, argv.data(), environ) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    read_url(out[0]);
    close(out[0]);
    EXPECT_EQ(url_.rfind("nfs://", 0), 0u) << "nfsrdma-memd printed: " << url_;
  }
  ~MemdProcess() { stop(); }
  MemdProcess(const MemdProcess&) = delete;
  MemdProcess& operator=(const MemdProcess&) = delete;

  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] pid_t pid() const { return pid_; }

  void stop() {
    if (pid_ <= 0) return;
    kill(pid_, SIGTERM);
    int status = 0;
    waitpid(pid_, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "nfsrdma-memd: " << status;
    pid_ = -1;
  }

 private:
  void read_url(int from) {
    char letter = 0;
    pollfd wait{.fd = from, .events = POLLIN, .revents = 0};
    while (poll(&wait, 1, 20'000) == 1 && read(from, &letter, 1) == 1 && letter != '\n')
      url_ += letter;
  }

  pid_t pid_ = -1;
  std::string url_;
};

}  // namespace nfsrdma::testing
