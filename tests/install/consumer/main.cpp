// A program outside the tree that uses the installed library: it makes a tensor on the CPU, prints
// its shape and what it holds, and shows that errors cross the library's border as exceptions.

#include "kitchen/base/error.h"
#include "kitchen/base/tensor.h"
#include "kitchen/reference/cpu_backend.h"

#include <iostream>
#include <vector>

int main() {
  const kitchen::ContextPtr context = kitchen::reference::make_cpu_context();
  const std::vector<float> values = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
  const kitchen::Tensor x = kitchen::Tensor::from_vector(context, {2, 3}, values);
  std::cout << "shape " << kitchen::to_string(x.shape()) << "\n";

  float sum = 0.0f;
  for (const float value : x.transpose(0, 1).to_vector<float>()) sum += value;
  std::cout << "sum " << sum << "\n";

  try {
    x.view({7});
  } catch (const kitchen::ValueError& error) {
    std::cout << "refused: " << error.what() << "\n";
    return 0;
  }
  std::cerr << "a view of 7 elements of a tensor of 6 was not refused\n";
  return 1;
}
