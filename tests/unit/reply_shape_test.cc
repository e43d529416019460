// SPDX-License-Identifier: GPL-2.0-or-later
#include "reply_shape.h"

#include <gtest/gtest.h>

#include "rpc_script.h"

namespace nfsrdma {
namespace {

using testing::hex;
using testing::XdrText;

bool shaped(const XdrText& text, std::string_view shape) {
  return has_shape(text.bytes(), shape);
}

TEST(ReplyShape, WordsAndBooleans) {
  EXPECT_TRUE(shaped(XdrText().u32(1).u64(2), "48"));
  EXPECT_FALSE(shaped(XdrText().u32(1).u32(2), "48"));
  EXPECT_TRUE(shaped(XdrText().u32(1).u32(0), "bb"));
  EXPECT_FALSE(shaped(XdrText().u32(2), "b"));
  EXPECT_TRUE(shaped(XdrText().u32(1).u32(9), "4"));  // what follows is left alone
  EXPECT_FALSE(shaped(XdrText().u32(1), "?"));
}

TEST(ReplyShape, HandlesAndStrings) {
  EXPECT_TRUE(shaped(XdrText().opaque(std::string(64, 'h')), "F"));
  EXPECT_FALSE(shaped(XdrText().opaque(std::string(65, 'h')), "F"));
  EXPECT_TRUE(shaped(XdrText().u32(1).opaque("h"), "f"));
  EXPECT_TRUE(shaped(XdrText().u32(0), "f"));
  EXPECT_TRUE(shaped(XdrText().opaque(std::string(1024, 's')), "s"));
  EXPECT_FALSE(shaped(XdrText().opaque(std::string(1025, 's')), "s"));
  EXPECT_FALSE(shaped(XdrText().opaque(std::string("a\0b", 3)), "s"));
  // Lengths that wrap when they are added to a position.
  EXPECT_FALSE(has_shape(hex("fffffff0 61616161"), "s"));
  EXPECT_FALSE(has_shape(hex("fffffff0 61616161"), "F"));
  EXPECT_FALSE(has_shape(hex("7fffffff 61616161"), "s"));
  // The pad belongs to the string.
  EXPECT_FALSE(has_shape(hex("00000001 61"), "s"));
  EXPECT_FALSE(has_shape(hex("00000003 616161"), "s"));
}

TEST(ReplyShape, Attributes) {
  EXPECT_TRUE(shaped(XdrText().fattr3(1, 5), "A"));
  EXPECT_TRUE(shaped(XdrText().fattr3(7, 5), "A"));
  EXPECT_FALSE(shaped(XdrText().fattr3(0, 5), "A"));
  EXPECT_FALSE(shaped(XdrText().fattr3(8, 5), "A"));
  EXPECT_TRUE(shaped(XdrText().post_op_attr(2, 5), "a"));
  EXPECT_TRUE(shaped(XdrText().no_wcc(), "w"));
  EXPECT_TRUE(shaped(XdrText().u32(1).u64(1).u64(2).u64(3).post_op_attr(1, 4), "w"));
  const auto bytes = XdrText().fattr3(1, 5).bytes();
  EXPECT_FALSE(has_shape(ConstBytes(bytes).first(80), "A"));
}

TEST(ReplyShape, ArraysAndLists) {
  EXPECT_TRUE(shaped(XdrText().u32(2).u32(1).u32(6), "I"));
  EXPECT_FALSE(shaped(XdrText().u32(3).u32(1).u32(6), "I"));
  EXPECT_FALSE(shaped(XdrText().u32(0x40000001).u32(1), "I"));
  EXPECT_TRUE(shaped(XdrText().u32(0), "{4}"));
  EXPECT_TRUE(shaped(XdrText().u32(1).u32(7).u32(1).u32(8).u32(0).u32(3), "{4}4"));
  EXPECT_FALSE(shaped(XdrText().u32(1).u32(7).u32(1).u32(8).u32(0), "{4}4"));
  EXPECT_FALSE(shaped(XdrText().u32(2).u32(7).u32(0), "{4}"));
}

TEST(ReplyShape, ListsAreBoundedTogether) {
  XdrText full;
  for (uint32_t i = 0; i < kListMax; i++) full.u32(1);
  EXPECT_TRUE(has_shape(XdrText(full).u32(0).bytes(), "{}"));
  EXPECT_FALSE(has_shape(XdrText(full).u32(1).u32(0).bytes(), "{}"));
  XdrText nested;  // half as outer, half as inner entries, and one more
  for (uint32_t i = 0; i < kListMax / 2; i++) nested.u32(1).u32(1).u32(0);
  EXPECT_TRUE(has_shape(XdrText(nested).u32(0).bytes(), "{{}}"));
  EXPECT_FALSE(has_shape(XdrText(nested).u32(1).u32(0).u32(0).bytes(), "{{}}"));
}

}  // namespace
}  // namespace nfsrdma
