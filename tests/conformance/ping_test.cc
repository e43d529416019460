// SPDX-License-Identifier: GPL-2.0-or-later
// nfsrdma-ping as a user calls it. The environment variable NFSRDMA_PING says where it is.
#include <cstdio>

#include "memd_process.h"

namespace nfsrdma::testing {
namespace {

struct Output {
  int status = -1;
  std::string text;
};

Output ping(const std::string& arguments, const std::string& url) {
  const char* path = std::getenv("NFSRDMA_PING");
  Output output;
  if (path == nullptr) return output;
  const std::string command =
      "'" + std::string(path) + "' " + arguments + " '" + url + "' 2>&1 </dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  char buffer[4096];
  while (const size_t got = fread(buffer, 1, sizeof buffer, pipe)) output.text.append(buffer, got);
  output.status = pclose(pipe);
  return output;
}

void expect_lines(const Output& output, std::initializer_list<const char*> lines) {
  EXPECT_EQ(output.status, 0) << output.text;
  for (const char* line : lines)
    EXPECT_NE(output.text.find(line), std::string::npos) << line << "\n" << output.text;
}

TEST(Ping, OverRdmaShowsWhatWasNegotiated) {
  MemdProcess server({"--credits", "7", "--rdma-inline", "8192"});
  expect_lines(
      ping("--transport rdma --fabric iwarp --inline-size 16384 -c 60", server.url()),
      {"transport            rdma\n", "fabric               iwarp\n", "inline_send          8192\n",
       "inline_receive       8192\n", "credits_granted      7\n", "remote_invalidation  off\n",
       "crc ", "ird ", "rtmax                1048576\n", "wtmax                1048576\n",
       "NULL: 60 calls", "GETATTR: 60 calls", "server               127.0.0.1:"});
}

TEST(Ping, KeysPerCall) {
  MemdProcess server;
  expect_lines(ping("--transport rdma --fabric auto --key-per-call -c 5", server.url()),
               {"keys                 per call: table entry\n", "remote_invalidation  on\n"});
}

TEST(Ping, OverTcp) {
  MemdProcess server;
  expect_lines(ping("--transport tcp -c 20", server.url()),
               {"transport            tcp\n", "NULL: 20 calls", "GETATTR: 20 calls"});
}

TEST(Ping, Exports) {
  MemdProcess server({"--export", "/export", "--export", "/other"});
  expect_lines(ping("--exports", server.url()), {"/export", "/other"});
}

TEST(Ping, ErrorsAreSentences) {
  const Output refused = ping("--transport rdma -c 1", "nfs://127.0.0.1:1/export?mountport=1");
  EXPECT_NE(refused.status, 0);
  EXPECT_NE(refused.text.find("nfsrdma-ping: "), std::string::npos) << refused.text;
  EXPECT_NE(ping("--transport udp", "nfs://127.0.0.1/").text.find("tcp or rdma"),
            std::string::npos);
}

}  // namespace
}  // namespace nfsrdma::testing
