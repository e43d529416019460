// SPDX-License-Identifier: GPL-2.0-or-later
// A running job: its session, its files, and what the words of fio's job mean for a WRITE.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "engine_api.h"
#include "namespace_client.h"
#include "run_statistics.h"
#include "session.h"
#include "target.h"

/// One thread: the job's own.
struct nfsrdma_job final : nfsrdma::IssueSink {
  static nfsrdma::Result<std::unique_ptr<nfsrdma_job>> open(const nfsrdma_options& options,
                                                            const nfsrdma_settings& settings,
                                                            nfsrdma::Bytes buffer,
                                                            nfsrdma_issued_fn issued,
                                                            void* context);
  ~nfsrdma_job();

  nfsrdma::Result<nfsrdma::SessionFile*> open_file(const std::string& name);
  int close_file(nfsrdma::SessionFile* file);
  int unlink(const std::string& name);
  bool write(nfsrdma::SessionFile* file, void* user, uint64_t offset, nfsrdma::ConstBytes from);
  uint32_t wait(uint32_t min, uint64_t deadline_ns, const volatile bool* stop);
  nfsrdma::IoCompletion take();

  void on_issued(void* user) override { issued_(context_, user); }

  nfsrdma::Session& session() { return *session_; }
  nfsrdma::NamespaceClient& names() { return *names_; }
  [[nodiscard]] const nfsrdma::Target& target() const { return target_; }

 private:
  nfsrdma_job() = default;
  void log_failure(const std::string& text);

  nfsrdma::Target target_;
  std::string name_;
  bool writes_ = false;
  bool fills_device_ = false;  ///< a full server ends the job and is no error
  uint32_t wtmax_ = 0;
  nfsrdma::StableHow stable_ = nfsrdma::StableHow::kUnstable;
  bool direct_rule_ = false;  // stable=auto, direct=1: by size
  nfsrdma_issued_fn issued_ = nullptr;
  void* context_ = nullptr;
  uint32_t failures_logged_ = 0;
  nfsrdma::JobRecord* record_ = nullptr;
  std::unique_ptr<nfsrdma::SessionStatistics> own_statistics_;  // without a record
  std::unique_ptr<nfsrdma::NamespaceClient> names_;
  std::unique_ptr<nfsrdma::Session> session_;
};
