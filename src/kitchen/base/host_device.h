#pragma once

/// @file  host_device.h
/// @brief The one place that asks which compiler reads the file.
///
/// Codecs, scale rules and the random generator are compiled by the host compiler and by nvcc from the
/// same text, so that CPU and GPU cannot drift apart.

#if defined(__CUDACC__)
#define KITCHEN_HOST_DEVICE __host__ __device__
#else
#define KITCHEN_HOST_DEVICE
#endif
