// SPDX-License-Identifier: GPL-2.0-or-later
// A job's files before it runs: sizes, creating, filling through NFS, unlinking. Over TCP, in
// fio's first process; everything is closed again before fio forks.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine_api.h"
#include "namespace_client.h"
#include "run_statistics.h"
#include "session.h"
#include "target.h"
#include "tcp_transport.h"
#include "wait_or_abandon.h"

using namespace nfsrdma;

namespace {

constexpr uint32_t kFillDepth = 8;
constexpr uint32_t kFillBlockMax = 1u << 20;
constexpr uint64_t kFillKept = 32u << 20;
constexpr uint64_t kProgressNs = 2'000'000'000;
constexpr uint64_t kMiB = 1u << 20;
constexpr uint64_t kFailedMountNs = 5'000'000'000;

class NoIssues final : public IssueSink {
  void on_issued(void*) override {}
};

// Not compressible, not the same in two places, and the same again with the same seed.
void fill_random(Bytes to, uint64_t* state) {
  uint64_t word = *state | 1;
  for (size_t at = 0; at + sizeof word <= to.size(); at += sizeof word) {
    word ^= word << 13;
    word ^= word >> 7;
    word ^= word << 17;
    std::memcpy(to.data() + at, &word, sizeof word);
  }
  *state = word;
}

}  // namespace

struct nfsrdma_files {
  Target target;
  nfsrdma_settings settings;
  std::unique_ptr<NamespaceClient> names;

  Result<uint64_t> size_of(const std::string& path) {
    auto found = names->open_file(path);
    if (found) return found->attributes.size;
    if (found.error().code == ENOENT) return UINT64_MAX;
    return tl::unexpected(found.error());
  }

  Result<void> lay_out(const std::string& path, uint64_t wanted);
  Result<void> fill(const std::string& path, const FileHandle& handle, uint64_t from,
                    uint64_t until);
};

Result<void> nfsrdma_files::lay_out(const std::string& path, uint64_t wanted) {
  auto size = size_of(path);
  if (!size) return tl::unexpected(size.error());
  const bool exists = *size != UINT64_MAX;
  if (settings.verify_only || (exists && *size >= wanted)) return {};
  const bool filled = settings.reads || settings.overwrite;
  if (settings.create_on_open && !filled) return {};
  if (exists && !filled && !settings.append) {
    auto removed = names->remove_file(path);
    if (!removed) return removed;
  }
  const size_t slash = path.rfind('/');
  if (!exists && slash != std::string::npos && slash != 0) {
    auto made = names->make_directories(path.substr(0, slash));
    if (!made) return tl::unexpected(made.error());
  }
  auto file = names->create_file(path);
  if (!file) return tl::unexpected(file.error());
  if (!filled) return {};
  return fill(path, file->handle, exists ? *size : 0, wanted);
}

Result<void> nfsrdma_files::fill(const std::string& path, const FileHandle& handle, uint64_t from,
                                 uint64_t until) {
  const Mounted& mounted = names->mounted();
  SessionConfig config;
  config.depth = kFillDepth;
  config.wtmax = std::clamp<uint32_t>(mounted.limits.wtmax, 4096, kFillBlockMax);
  config.rtmax = config.wtmax;
  config.uncommitted_max = kFillKept;
  config.soft = target.transport.soft;
  TransportConfig transport = target.transport;
  transport.host = mounted.host;
  transport.port = mounted.nfs_port;
  transport.slots = Session::slots_per_connection(config, 1, config.wtmax);
  transport.bulk_max = config.wtmax;
  auto connection = TcpTransport::open(transport);
  if (!connection) return tl::unexpected(connection.error());
  std::vector<std::unique_ptr<Transport>> connections;
  connections.push_back(std::move(*connection));
  auto statistics = std::make_unique<SessionStatistics>();
  NoIssues nobody;
  Session session(config, std::move(connections), target.mounting.credential, statistics.get(),
                  &nobody);
  SessionFile* file = session.open_file(path, handle);

  std::vector<std::vector<std::byte>> blocks(kFillDepth, std::vector<std::byte>(config.wtmax));
  std::vector<std::vector<std::byte>*> free_blocks;
  for (auto& block : blocks) free_blocks.push_back(&block);
  uint64_t state = settings.fill_seed ^ (uint64_t{0x9E3779B97F4A7C15} * settings.number);
  uint64_t tell_at = now_ns() + kProgressNs;
  int error = 0;
  bool given_up = false;
  for (uint64_t at = from; (at < until && error == 0) || session.outstanding() != 0;) {
    if (error == 0 && stopped(settings.stop)) {
      error = EINTR;
      continue;  // nothing may be outstanding any more
    }
    while (at < until && error == 0 && !free_blocks.empty()) {
      auto* block = free_blocks.back();
      free_blocks.pop_back();
      const auto length = static_cast<uint32_t>(std::min<uint64_t>(block->size(), until - at));
      fill_random(*block, &state);
      session.write(block, file, at, {block->data(), length}, StableHow::kUnstable, false);
      at += length;
    }
    wait_or_abandon(session, 1, kNever, settings.stop);
    while (session.ready() != 0) {
      const IoCompletion done = session.take();
      free_blocks.push_back(static_cast<std::vector<std::byte>*>(done.user));
      if (error == 0) error = done.error;
      if (done.error == EINTR) given_up = true;
    }
    if (now_ns() < tell_at) continue;
    tell_at = now_ns() + kProgressNs;
    nfsrdma_log_info(("laying out '" + path + "': " + std::to_string((at - from) / kMiB) + " of " +
                      std::to_string((until - from) / kMiB) + " MiB written")
                         .c_str());
  }
  const std::string why = session.take_error_text();
  if (given_up)
    return fail(EINTR, "laying out '" + path + "': told to end while the server did not answer");
  auto closed = session.close_file(file);
  if (error == EINTR)
    return fail(EINTR, "laying out '" + path + "': told to end before it was whole");
  const bool full = error == ENOSPC || error == EDQUOT;
  if (full && settings.fill_device) return closed;  // which is what was asked for
  if (error != 0) return fail(error, "laying out '" + path + "': " + why);
  return closed;
}

namespace {

int told(const Error& error) {
  if (first_to_say(error.text)) nfsrdma_log_error(error.text.c_str());
  return error.code;
}

// The last mount of this process that failed. fio sets up its jobs one after the other: those that
// ask for the same need not wait for the same deadline again.
struct FailedMount {
  std::mutex mutex;
  std::string asked;
  Error error;
  uint64_t at_ns = 0;
} failed_mount;

std::string mount_key(const nfsrdma_options& options) {
  std::string key;
  for (const char* text :
       {options.nfs_url, options.local_address, options.auth_uid, options.auth_gid}) {
    if (text != nullptr) key += text;
    key += '\0';
  }
  return key + std::to_string(options.reserved_port);
}

Result<std::unique_ptr<NamespaceClient>> mount_once(const nfsrdma_options& options,
                                                    const Target& target) {
  const std::string key = mount_key(options);
  {
    const std::lock_guard<std::mutex> guard(failed_mount.mutex);
    if (failed_mount.asked == key && now_ns() - failed_mount.at_ns < kFailedMountNs)
      return tl::unexpected(failed_mount.error);
  }
  auto names = NamespaceClient::mount(target.url, tcp_connector(target), target.mounting);
  if (!names) {
    const std::lock_guard<std::mutex> guard(failed_mount.mutex);
    failed_mount.asked = key;
    failed_mount.error = names.error();
    failed_mount.at_ns = now_ns();
  }
  return names;
}

}  // namespace

extern "C" {

nfsrdma_files* nfsrdma_files_open(const nfsrdma_options* options, const nfsrdma_settings* settings,
                                  int* error) {
  if (stopped(settings->stop)) {  // with the job before it, which has said so
    *error = EINTR;
    return nullptr;
  }
  auto target = target_of(*options, settings->stop);
  if (!target) {
    *error = told(target.error());
    return nullptr;
  }
  auto names = mount_once(*options, *target);
  if (!names) {
    *error = told(names.error());
    return nullptr;
  }
  return new nfsrdma_files{std::move(*target), *settings, std::move(*names)};
}

int nfsrdma_files_size(nfsrdma_files* files, const char* name, uint64_t* size) {
  auto found = files->size_of(files->target.path_of(name));
  if (!found) return told(found.error());
  *size = *found;
  return 0;
}

int nfsrdma_files_lay_out(nfsrdma_files* files, const char* name, uint64_t wanted) {
  auto made = files->lay_out(files->target.path_of(name), wanted);
  return made ? 0 : told(made.error());
}

int nfsrdma_files_unlink(nfsrdma_files* files, const char* name) {
  auto removed = files->names->remove_file(files->target.path_of(name));
  if (removed) return 0;
  return removed.error().code == ENOENT ? ENOENT : told(removed.error());
}

void nfsrdma_files_close(nfsrdma_files* files) {
  files->names->unmount();
  delete files;
}

}  // extern "C"
