#include "kitchen/recipes/q_attention_params.h"

namespace kitchen {

std::string QAttentionParams::repr() const {
  return (name.empty() ? std::string("QAttentionParams") : name) +
         "\n  bmm1 (scores): " + quantizer_bmm1->repr() +
         "\n  bmm2 (context): " + quantizer_bmm2->repr();
}

bool operator==(const QAttentionParams& a, const QAttentionParams& b) {
  return *a.quantizer_bmm1 == *b.quantizer_bmm1 && *a.quantizer_bmm2 == *b.quantizer_bmm2;
}

}  // namespace kitchen
