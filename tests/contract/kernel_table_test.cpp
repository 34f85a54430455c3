#include "kitchen/backends/available_backends.h"
#include "kitchen/base/memory_kernels.h"
#include "kitchen/ops/activation.h"
#include "kitchen/ops/cross_entropy.h"
#include "kitchen/ops/delayed_scaling.h"
#include "kitchen/ops/dropout.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/embedding.h"
#include "kitchen/ops/flash_attention_fp8.h"
#include "kitchen/ops/grouped_gemm.h"
#include "kitchen/ops/init.h"
#include "kitchen/ops/norm.h"
#include "kitchen/ops/optimizer.h"
#include "kitchen/ops/rotary.h"
#include "kitchen/ops/scale_layout.h"
#include "kitchen/ops/softmax.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace kitchen {
namespace {

template <class... Kernels>
struct KernelList {
  /// Names of those that the table does not have.
  static std::set<std::string> missing_in(const Backend& table) {
    std::set<std::string> missing;
    ((table.variants<Kernels>().empty() ? void(missing.insert(Kernels::kName)) : void()), ...);
    return missing;
  }
};

using namespace ops;  // every kernel of every op is named below
using AllKernels = KernelList<
    FillBytesKernel, CopyFromHostKernel, CopyToHostKernel, CopyStridedKernel, SynchronizeKernel,
    CreateStreamKernel, DestroyStreamKernel, ActivationForwardKernel, ActivationBackwardKernel,
    CrossEntropyForwardKernel, CrossEntropyBackwardKernel, RecordAmaxKernel,
    UpdateDelayedScaleKernel, DropoutKernel, BiasDropoutAddKernel, AddBiasKernel, AxpbyKernel,
    CastKernel, FillKernel, MultiplyKernel, ScaleKernel, SumAllKernel, SumRowsKernel,
    EmbeddingForwardKernel, EmbeddingBackwardKernel, FlashAttentionForwardKernel,
    FlashAttentionBackwardKernel, FlashAttentionFp8ForwardKernel, FlashAttentionFp8BackwardKernel,
    GemmKernel, GemmWorkspaceKernel, QuantizedGemmKernel, QuantizedGemmWorkspaceKernel,
    GroupedQuantizedGemmKernel, GroupedQuantizedGemmWorkspaceKernel, NormalInitKernel,
    NormForwardKernel, NormBackwardKernel, AdamWKernel, ClipScaleKernel, SumSquaresKernel,
    RotaryKernel, MatrixAmaxKernel, QuantizeKernel, DequantizeKernel, TransposeQuantizedKernel,
    QuantizationStatsKernel, ArrangeScalesKernel, RestoreScalesKernel, SoftmaxForwardKernel,
    SoftmaxBackwardKernel>;

/// What a device may lack; each is refused by name.
const std::set<std::string> kAllowedMissing = {"flash_attention_fp8_forward",
                                               "flash_attention_fp8_backward"};

// labels: base.Context ops.kernel_table
TEST(KernelTable, EveryDeviceHasTheKernelsOfTheReferenceButTheNamedOnes) {
  for (const AvailableBackend& backend : available_backends()) {
    const std::set<std::string> missing = AllKernels::missing_in(*backend.kernels());
    EXPECT_EQ(missing, backend.name == "cpu" ? std::set<std::string>() : kAllowedMissing)
        << backend.name;
  }
}

}  // namespace
}  // namespace kitchen
