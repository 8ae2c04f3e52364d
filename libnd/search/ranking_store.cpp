// SPDX-License-Identifier: Apache-2.0
#include "search/ranking_store.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "nd/result.hpp"

namespace nd::search {

namespace {

constexpr std::size_t kBlock = 512;  ///< strategies of a run that are in memory while it is read
constexpr long kSize = static_cast<long>(sizeof(RankedCandidate));
static_assert(std::is_trivially_copyable_v<RankedCandidate>, "runs are stored as they are in memory");

}  // namespace

/// One run, front first.
class RankingStore::Reader {
 public:
  Reader(std::FILE* file, const Run& run) : file_(file), run_(&run) { refill(); }
  [[nodiscard]] bool done() const { return at_ == block_.size(); }
  [[nodiscard]] const RankedCandidate& front() const { return block_[at_]; }
  void next() {
    if (++at_ == block_.size()) refill();
  }

 private:
  void refill() {
    at_ = 0;
    block_.resize(std::min(kBlock, run_->count - read_));
    if (block_.empty()) return;
    if (run_->kept.empty()) {
      const bool found = std::fseek(file_, (run_->offset + static_cast<long>(read_)) * kSize, SEEK_SET) == 0;
      ND_CHECK(found && std::fread(block_.data(), sizeof(RankedCandidate), block_.size(), file_) == block_.size());
    } else {
      std::copy_n(run_->kept.begin() + static_cast<std::ptrdiff_t>(read_), block_.size(), block_.begin());
    }
    read_ += block_.size();
  }

  std::FILE* file_;
  const Run* run_;
  std::vector<RankedCandidate> block_;
  std::size_t at_ = 0, read_ = 0;
};

bool RankingStore::write(const std::vector<RankedCandidate>& run) {
  if (no_file_) return false;
  if (!file_) file_.reset(std::tmpfile());
  const bool written = file_ && std::fseek(file_.get(), stored_ * kSize, SEEK_SET) == 0 &&
                       std::fwrite(run.data(), sizeof(RankedCandidate), run.size(), file_.get()) == run.size() && std::fflush(file_.get()) == 0;
  no_file_ = !written;
  return written;
}

void RankingStore::add(std::vector<RankedCandidate>& run) {
  if (run.empty()) return;
  std::sort(run.begin(), run.end(), order_);
  const std::scoped_lock lock(mutex_);
  Run entry{.offset = stored_, .count = run.size(), .kept = {}};
  if (write(run)) stored_ += static_cast<long>(run.size());
  else entry.kept = run;
  runs_.push_back(std::move(entry));
  run.clear();
}

void RankingStore::for_each(const std::function<void(const RankedCandidate&)>& visit) {
  std::vector<Reader> readers;
  readers.reserve(runs_.size());
  for (const Run& run : runs_) readers.emplace_back(file_.get(), run);
  const auto later = [this, &readers](std::size_t a, std::size_t b) { return order_(readers[b].front(), readers[a].front()); };
  std::vector<std::size_t> heap;
  for (std::size_t i = 0; i < readers.size(); ++i) heap.push_back(i);
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    Reader& reader = readers[heap.back()];
    visit(reader.front());
    reader.next();
    if (reader.done()) heap.pop_back();
    else std::push_heap(heap.begin(), heap.end(), later);
  }
}

}  // namespace nd::search
