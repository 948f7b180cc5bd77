// The one exception type of the C++ layers; bind/ turns it into the Python class that `kind` names.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "core/extents.hpp"

namespace ferry {

enum class ErrorKind : unsigned char {
  copy_required,
  layout,
  dtype,
  device,
  buffer_mismatch,
  read_only,
  autograd,
  precision_loss,
};

// A message has three parts: what was given, why it cannot be done, what to write instead.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string given, std::string why, std::string instead)
      : kind_(kind),
        given_(std::move(given)),
        why_(std::move(why)),
        instead_(std::move(instead)),
        text_(given_ + ": " + why_ + "; " + instead_) {}

  // The element that the error is about, for precision_loss.
  Error& at(const Extents& index) noexcept {
    index_ = index;
    return *this;
  }
  [[nodiscard]] const Extents& index() const noexcept { return index_; }

  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }
  [[nodiscard]] const std::string& given() const noexcept { return given_; }
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  [[nodiscard]] const std::string& instead() const noexcept { return instead_; }
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  ErrorKind kind_;
  std::string given_;
  std::string why_;
  std::string instead_;
  std::string text_;
  Extents index_;
};

}  // namespace ferry
