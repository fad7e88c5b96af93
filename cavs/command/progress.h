// Progress for humans: on a terminal one line that is redrawn, with a bar, the rate and the time left; elsewhere a
// plain line now and then. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace cavs {

struct ProgressOptions {
  bool quiet = false;     // write nothing at all
  bool terminal = false;  // redraw one line
  int columns = 80;       // width of the terminal
  std::function<void(std::string_view)> write;
  std::function<double()> seconds;  // a clock that never goes back
};

// Options for stderr: whether it is a terminal and how wide, and the steady clock.
ProgressOptions ProgressOnStderr(bool quiet);

class Progress {
 public:
  explicit Progress(ProgressOptions options);

  // Wipes an unfinished bar, so that what follows on the terminal has a line of its own.
  ~Progress();

  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Starts a stretch of `total` units, such as Begin("epoch 3/10", 8544, "trees"). Total 0: not known.
  void Begin(std::string title, int64_t total, std::string unit);

  // `done` units are finished; `note` follows the numbers ("loss 0.532"). Cheap: draws a few times a second at most, on
  // a terminal, or every ten seconds.
  void Update(int64_t done, std::string_view note = {});

  // Ends the stretch and wipes the bar.
  void End();

  // A line that stays; the bar, if there is one, moves below it.
  void Line(std::string_view text);

 private:
  std::string Describe(double elapsed, std::string_view note) const;
  void Draw(std::string_view text);
  void Wipe();

  ProgressOptions options_;
  std::string title_;
  std::string unit_;
  std::string drawn_;
  int64_t total_ = 0;
  int64_t done_ = 0;
  double begin_ = 0;
  double next_ = 0;
};

}  // namespace cavs
