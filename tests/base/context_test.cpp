#include "kitchen/base/context.h"

#include "kitchen/base/error.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

namespace kitchen {
namespace {

struct ProbeKernel {
  static constexpr const char* kName = "probe";
  using Fn = void (*)(const Stream&, const Context&, std::string& seen);
};

void probe(const Stream& /*stream*/, const Context& context, std::string& seen) {
  // As a watchdog does: from a thread of its own.
  seen = std::async(std::launch::async, [&] {
           const char* op = context.running_op();
           return std::string(op == nullptr ? "none" : op);
         }).get();
}

void failing_probe(const Stream& /*stream*/, const Context& /*context*/, std::string& /*seen*/) {
  throw RuntimeError("probe failed");
}

// labels: base.Context ruling-6.25
TEST(Context, AnotherThreadSeesWhichOpRunsAndNoneBetweenOps) {
  const auto backend = std::make_shared<Backend>("test");
  backend->add<ProbeKernel>("good", &probe);
  backend->add<ProbeKernel>("bad", &failing_probe);
  const Context context(Device::cpu(), backend, std::make_shared<CountingAllocator>());
  EXPECT_EQ(context.running_op(), nullptr);
  std::string seen;
  context.launch<ProbeKernel>("good", context, seen);
  EXPECT_EQ(seen, "probe");
  EXPECT_EQ(context.running_op(), nullptr);
  EXPECT_THROW(context.launch<ProbeKernel>("bad", context, seen), RuntimeError);
  EXPECT_EQ(context.running_op(), nullptr);
}

}  // namespace
}  // namespace kitchen
