// SPDX-License-Identifier: GPL-2.0-or-later
#include "job.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "wait_or_abandon.h"

namespace {

using namespace nfsrdma;

constexpr uint32_t kFailuresLogged = 10;
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint32_t kBulkMax = 16u << 20;
constexpr uint32_t kSmallestMax = 4096;  // an rtmax or wtmax below this is no server's

uint32_t piece_max(uint32_t server_max, const std::optional<uint32_t>& asked) {
  const uint32_t bounded = std::clamp(server_max, kSmallestMax, kBulkMax);
  return asked ? std::clamp(*asked, kSmallestMax, bounded) : bounded;
}

PollMode poll_mode(unsigned value) {
  switch (value) {
    case NFSRDMA_POLL_EVENT:
      return PollMode::kEvent;
    case NFSRDMA_POLL_BUSY:
      return PollMode::kBusy;
    default:
      return PollMode::kHybrid;
  }
}

StableHow stable_how(const nfsrdma_options& options, const nfsrdma_settings& settings) {
  switch (options.stable) {
    case NFSRDMA_STABLE_UNSTABLE:
      return StableHow::kUnstable;
    case NFSRDMA_STABLE_DATA_SYNC:
      return StableHow::kDataSync;
    case NFSRDMA_STABLE_FILE_SYNC:
      return StableHow::kFileSync;
    default:
      break;
  }
  if (settings.sync) return StableHow::kFileSync;
  if (settings.dsync) return StableHow::kDataSync;
  return settings.direct ? StableHow::kFileSync : StableHow::kUnstable;
}

Result<std::vector<std::unique_ptr<Transport>>> connect_all(const nfsrdma_options& options,
                                                            const Target& target,
                                                            const Mounted& mounted,
                                                            TransportConfig config) {
  config.host = mounted.host;
  config.port = mounted.nfs_port;
  std::vector<std::unique_ptr<Transport>> connections;
  for (unsigned i = 0; i < options.nconnect; ++i) {
    auto transport = connect_data(options, config, target.url);
    if (!transport) return tl::unexpected(transport.error());
    connections.push_back(std::move(*transport));
  }
  return connections;
}

}  // namespace

Result<std::unique_ptr<nfsrdma_job>> nfsrdma_job::open(const nfsrdma_options& options,
                                                       const nfsrdma_settings& settings,
                                                       Bytes buffer, nfsrdma_issued_fn issued,
                                                       void* context) {
  auto target = target_of(options, settings.stop);
  if (!target) return tl::unexpected(target.error());
  // Several hosts are addresses of one server: jobs are spread over them.
  auto& hosts = target->url.hosts;
  std::rotate(hosts.begin(), hosts.begin() + (settings.number - 1) % hosts.size(), hosts.end());
  auto names = NamespaceClient::mount(target->url, tcp_connector(*target), target->mounting);
  if (!names) return tl::unexpected(names.error());

  std::unique_ptr<nfsrdma_job> job(new nfsrdma_job);
  const Mounted& mounted = (*names)->mounted();
  SessionConfig config;
  config.depth = settings.depth;
  config.rtmax = piece_max(mounted.limits.rtmax, target->url.read_max);
  config.wtmax = piece_max(mounted.limits.wtmax, target->url.write_max);
  config.poll = poll_mode(options.nfs_poll);
  config.commit_bytes = options.commit_bytes;
  config.commit_ms = options.commit_ms;
  config.soft = target->transport.soft;
  config.timeo_ms = target->transport.timeo_ms;
  config.retrans = target->transport.retrans;

  job->stable_ = stable_how(options, settings);
  job->direct_rule_ =
      options.stable == NFSRDMA_STABLE_AUTO && settings.direct && !settings.sync && !settings.dsync;
  const bool keeps = settings.writes && job->stable_ == StableHow::kUnstable;
  if (keeps) {
    config.uncommitted_max = options.uncommitted_max;
    if (config.uncommitted_max != 0)
      config.wtmax = std::min<uint64_t>(config.wtmax, config.uncommitted_max / 2);
  }
  job->wtmax_ = config.wtmax;

  TransportConfig transport = target->transport;
  transport.slots = Session::slots_per_connection(config, options.nconnect, settings.block_max);
  transport.bulk_max = std::max(config.rtmax, config.wtmax);
  auto connections = connect_all(options, *target, mounted, transport);
  if (!connections) return tl::unexpected(connections.error());

  job->record_ = job_record(settings.number);
  if (job->record_ == nullptr) job->own_statistics_ = std::make_unique<SessionStatistics>();
  SessionStatistics* statistics =
      job->record_ != nullptr ? &job->record_->statistics : job->own_statistics_.get();
  if (job->record_ != nullptr) {
    job->record_->state = JobState::kRunning;
    job->record_->depth = settings.depth;
    describe_transport(job->record_, connections->front()->info(), options.nconnect);
    if (options.stats_json != nullptr)
      std::snprintf(job->record_->stats_json, sizeof job->record_->stats_json, "%s",
                    options.stats_json);
  }
  job->target_ = std::move(*target);
  job->name_ = settings.job_name;
  job->writes_ = settings.writes;
  job->fills_device_ = settings.fill_device;
  job->issued_ = issued;
  job->context_ = context;
  job->session_ = std::make_unique<Session>(
      config, std::move(*connections), job->target_.mounting.credential, statistics, job.get());
  job->names_ = std::move(*names);
  if (auto added = job->session_->add_memory(buffer); !added) return tl::unexpected(added.error());
  // LOOKUP, CREATE and the rest go the way of the job's data.
  job->names_->call_through(*job->session_);
  return job;
}

nfsrdma_job::~nfsrdma_job() {
  // Once more: what the server granted is known only now.
  if (record_ != nullptr && session_ != nullptr)
    describe_transport(record_, session_->info(), record_->connections);
  if (names_ != nullptr) names_->unmount();
}

Result<SessionFile*> nfsrdma_job::open_file(const std::string& name) {
  const std::string path = target_.path_of(name);
  auto found = names_->open_file(path);
  if (!found && found.error().code == ENOENT && writes_) {
    const size_t slash = path.rfind('/');
    if (slash != std::string::npos && slash != 0) {
      auto made = names_->make_directories(path.substr(0, slash));
      if (!made) return tl::unexpected(made.error());
    }
    found = names_->create_file(path);
  }
  if (!found) return tl::unexpected(found.error());
  return session_->open_file(path, found->handle);
}

int nfsrdma_job::close_file(SessionFile* file) {
  auto closed = session_->close_file(file);
  if (closed) return 0;
  log_failure(closed.error().text);
  return closed.error().code;
}

// fio unlinks before it closes, and once more behind that.
int nfsrdma_job::unlink(const std::string& name) {
  const std::string path = target_.path_of(name);
  session_->forget_unlinked(path);
  auto removed = names_->remove_file(path);
  if (removed) return 0;
  if (removed.error().code != ENOENT) log_failure(removed.error().text);
  return removed.error().code;
}

bool nfsrdma_job::write(SessionFile* file, void* user, uint64_t offset, ConstBytes from) {
  const bool commit_after = direct_rule_ && from.size() > wtmax_;
  return session_->write(user, file, offset, from, stable_, commit_after);
}

uint32_t nfsrdma_job::wait(uint32_t min, uint64_t deadline_ns, const volatile bool* stop) {
  return wait_or_abandon(*session_, min, deadline_ns, stop);
}

IoCompletion nfsrdma_job::take() {
  const IoCompletion done = session_->take();
  if (done.error == 0) return done;
  const std::string why = session_->take_error_text();
  const bool full = done.error == ENOSPC || done.error == EDQUOT;
  if (!full || !fills_device_) log_failure(why);
  return done;
}

void nfsrdma_job::log_failure(const std::string& text) {
  if (text.empty() || failures_logged_ > kFailuresLogged) return;
  if (++failures_logged_ > kFailuresLogged)
    nfsrdma_log_error((name_ + ": further errors of this job are not shown").c_str());
  else
    nfsrdma_log_error((name_ + ": " + text).c_str());
}

namespace {

int logged(const Error& error) {
  if (first_to_say(error.text)) nfsrdma_log_error(error.text.c_str());
  return error.code;
}

SessionFile* as_file(nfsrdma_file* file) {
  return reinterpret_cast<SessionFile*>(file);
}

}  // namespace

extern "C" {

nfsrdma_job* nfsrdma_job_open(const nfsrdma_options* options, const nfsrdma_settings* settings,
                              void* buffer, uint64_t buffer_length, nfsrdma_issued_fn issued,
                              void* context, int* error) {
  auto job = nfsrdma_job::open(*options, *settings,
                               {static_cast<std::byte*>(buffer), buffer_length}, issued, context);
  if (job) return job->release();
  *error = logged(job.error());
  return nullptr;
}

nfsrdma_file* nfsrdma_job_open_file(nfsrdma_job* job, const char* name, int* error) {
  auto file = job->open_file(name);
  if (file) return reinterpret_cast<nfsrdma_file*>(*file);
  *error = logged(file.error());
  return nullptr;
}

int nfsrdma_job_close_file(nfsrdma_job* job, nfsrdma_file* file) {
  return job->close_file(as_file(file));
}

int nfsrdma_job_file_size(nfsrdma_job* job, const char* name, uint64_t* size) {
  auto found = job->names().open_file(job->target().path_of(name));
  if (!found && found.error().code != ENOENT) return logged(found.error());
  *size = found ? found->attributes.size : UINT64_MAX;
  return 0;
}

int nfsrdma_job_unlink(nfsrdma_job* job, const char* name) {
  return job->unlink(name);
}

bool nfsrdma_job_read(nfsrdma_job* job, nfsrdma_file* file, void* user, uint64_t offset, void* to,
                      uint32_t length) {
  return job->session().read(user, as_file(file), offset, {static_cast<std::byte*>(to), length});
}

bool nfsrdma_job_write(nfsrdma_job* job, nfsrdma_file* file, void* user, uint64_t offset,
                       const void* from, uint32_t length) {
  return job->write(as_file(file), user, offset, {static_cast<const std::byte*>(from), length});
}

bool nfsrdma_job_sync(nfsrdma_job* job, nfsrdma_file* file, void* user) {
  return job->session().sync(user, as_file(file));
}

void nfsrdma_job_commit(nfsrdma_job* job) {
  job->session().commit();
}

unsigned nfsrdma_job_wait(nfsrdma_job* job, unsigned min, const timespec* timeout,
                          const volatile bool* stop) {
  uint64_t deadline = kNever;
  if (timeout != nullptr)
    deadline = now_ns() + static_cast<uint64_t>(timeout->tv_sec) * kSecond +
               static_cast<uint64_t>(timeout->tv_nsec);
  return job->wait(min, deadline, stop);
}

nfsrdma_event nfsrdma_job_take(nfsrdma_job* job) {
  const IoCompletion done = job->take();
  return {.user = done.user, .error = done.error, .bytes = done.bytes};
}

void nfsrdma_job_close(nfsrdma_job* job) {
  delete job;
}

}  // extern "C"
