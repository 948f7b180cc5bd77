// What the system tells of a link, from files as it has them, and the figures that follow.
#include <filesystem>
#include <fstream>

#include "../support.hpp"
#include "transfer/link_figures.hpp"

namespace ferry::test {
namespace {

class PciDevices : public ::testing::Test {
 protected:
  PciDevices() : root_(std::filesystem::temp_directory_path() / ("ferry_pci_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(root_ / "slot" / "0000:0a:00.0");
    std::filesystem::create_directories(root_ / "devices");
    std::filesystem::create_directory_symlink(root_ / "slot" / "0000:0a:00.0", root_ / "devices" / "0000:0a:00.0");
  }
  ~PciDevices() override { std::filesystem::remove_all(root_); }
  PciDevices(const PciDevices&) = delete;
  PciDevices& operator=(const PciDevices&) = delete;

  void device_says(const char* file, const char* text) {
    std::ofstream(root_ / "slot" / "0000:0a:00.0" / file) << text;
  }
  void slot_says(const char* file, const char* text) { std::ofstream(root_ / "slot" / file) << text; }
  [[nodiscard]] std::optional<LinkFacts> read() const {
    return read_link((root_ / "devices").string(), "0000:0A:00.0");
  }

 private:
  std::filesystem::path root_;
};

TEST_F(PciDevices, AnIdleLinkCountsWithTheSpeedThatItCanReach) {
  device_says("max_link_speed", "32.0 GT/s PCIe\n");
  device_says("current_link_speed", "2.5 GT/s PCIe\n");
  device_says("max_link_width", "16\n");
  device_says("current_link_width", "16\n");
  EXPECT_EQ(read(), (LinkFacts{32, 16}));
}

TEST_F(PciDevices, TheSlotMayBeSlowerAndNarrowerThanTheDevice) {
  device_says("max_link_speed", "32.0 GT/s PCIe\n");
  slot_says("max_link_speed", "16.0 GT/s PCIe\n");
  device_says("max_link_width", "16\n");
  device_says("current_link_width", "8\n");
  EXPECT_EQ(read(), (LinkFacts{16, 8}));
}

TEST_F(PciDevices, WhatIsUnknownIsUnknown) {
  EXPECT_EQ(read(), std::nullopt);
  device_says("max_link_speed", "Unknown\n");
  device_says("current_link_width", "0\n");
  EXPECT_EQ(read(), std::nullopt);
  EXPECT_EQ(read_link("/nowhere", "0000:0a:00.0"), std::nullopt);
}

TEST(LinkFigures, AreThoseOfFullLinksOfTwoGenerations) {
  const LinkFigures fourth = figures_for(LinkFacts{16, 16});
  EXPECT_EQ(fourth.nbytes_per_s, 25e9);
  EXPECT_EQ(fourth.stores_when_waiting, 125'000);
  EXPECT_EQ(fourth.stores_when_not, 31'250);
  const LinkFigures fifth = figures_for(LinkFacts{32, 16});
  EXPECT_EQ(fifth.nbytes_per_s, 52e9);
  EXPECT_EQ(fifth.stores_when_waiting, 260'000);
  EXPECT_EQ(fifth.stores_of_blocks, 16 << 10);
  EXPECT_EQ(fifth.from, FiguresFrom::link);
}

TEST(LinkFigures, AreInProportionToTheLanes) {
  EXPECT_EQ(figures_for(LinkFacts{32, 8}).nbytes_per_s, 26e9);
  EXPECT_EQ(figures_for(LinkFacts{8, 4}).nbytes_per_s, 3.12e9);
}

TEST(LinkFigures, AreTheDefaultsWhereNothingIsKnown) {
  EXPECT_EQ(figures_for(std::nullopt), LinkFigures{});
  EXPECT_EQ(LinkFigures{}.from, FiguresFrom::defaults);
  EXPECT_EQ(figures_for(LinkFacts{1, 16}), LinkFigures{});
}

}  // namespace
}  // namespace ferry::test
