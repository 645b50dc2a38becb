// The interface of the vector unit, as far as the device headers of the release use it.
//
// The real header comes with the vendor's compiler. These declarations are written from how the
// device headers call them and serve to check types: nothing is defined, and the numbers of the
// instruction modes are not those of the hardware.

#pragma once

#include <cstdint>
#include <type_traits>

#define sfpi_inline inline __attribute__((always_inline))

// Lanes are enabled by a condition within these. Braces follow each but v_endif and v_endblock.
#define v_if(...) \
    {             \
        ::sfpi::enable_lanes(__VA_ARGS__);
#define v_elseif(...) ::sfpi::enable_lanes(__VA_ARGS__);
#define v_else
#define v_endif }
#define v_and(...) ::sfpi::enable_lanes(__VA_ARGS__)
#define v_block {
#define v_endblock }

namespace sfpi {

/// What the compiler's intrinsics take and return: the contents of a vector register.
struct VectorRegister {};

template <typename Element>
class Vector;
using vFloat = Vector<float>;
using vInt = Vector<std::int32_t>;
using vUInt = Vector<std::uint32_t>;

/// A truth value for each lane; an integer is true where it is not zero.
struct LaneCondition {
    LaneCondition();
    LaneCondition(vInt);
    LaneCondition(vUInt);
    operator vInt() const;
    friend LaneCondition operator&&(LaneCondition, LaneCondition);
    friend LaneCondition operator||(LaneCondition, LaneCondition);
    friend LaneCondition operator!(LaneCondition);
};

void enable_lanes(LaneCondition);

/// Sixteen-bit floating-point constants: with five (a) and eight (b) bits of exponent.
struct sFloat16a {
    template <typename Number, typename = std::enable_if_t<std::is_arithmetic_v<Number>>>
    explicit constexpr sFloat16a(Number) {}
};
struct sFloat16b {
    template <typename Number, typename = std::enable_if_t<std::is_arithmetic_v<Number>>>
    explicit constexpr sFloat16b(Number) {}
};

/// A value for each lane.
template <typename Element>
class Vector {
  public:
    Vector();
    Vector(const Vector&);
    Vector(VectorRegister);
    Vector(sFloat16a);
    Vector(sFloat16b);
    template <typename Number, typename = std::enable_if_t<std::is_arithmetic_v<Number>>>
    Vector(Number);
    /// Integers of either sign are the same register.
    template <typename Other, typename = std::enable_if_t<std::is_integral_v<Element> &&
                                                          std::is_integral_v<Other> &&
                                                          !std::is_same_v<Element, Other>>>
    Vector(Vector<Other>);

    Vector& operator=(const Vector&);
    VectorRegister get() const;

    Vector& operator+=(Vector);
    Vector& operator-=(Vector);
    Vector& operator*=(Vector);
    Vector& operator&=(Vector);
    Vector& operator|=(Vector);
    Vector& operator^=(Vector);
    Vector& operator<<=(Vector);
    Vector& operator>>=(Vector);

    friend Vector operator-(Vector);
    friend Vector operator~(Vector);
    friend Vector operator+(Vector, Vector);
    friend Vector operator-(Vector, Vector);
    friend Vector operator*(Vector, Vector);
    friend Vector operator&(Vector, Vector);
    friend Vector operator|(Vector, Vector);
    friend Vector operator^(Vector, Vector);
    friend Vector operator<<(Vector, int);
    friend Vector operator>>(Vector, int);

    friend LaneCondition operator==(Vector, Vector);
    friend LaneCondition operator!=(Vector, Vector);
    friend LaneCondition operator<(Vector, Vector);
    friend LaneCondition operator<=(Vector, Vector);
    friend LaneCondition operator>(Vector, Vector);
    friend LaneCondition operator>=(Vector, Vector);
};

/// Of integers, the left one says whether the result has a sign.
template <typename Left, typename Right>
using MixedVector = std::enable_if_t<std::is_integral_v<Left> && std::is_integral_v<Right> &&
                                         !std::is_same_v<Left, Right>,
                                     Vector<Left>>;
template <typename Left, typename Right>
MixedVector<Left, Right> operator+(Vector<Left>, Vector<Right>);
template <typename Left, typename Right>
MixedVector<Left, Right> operator-(Vector<Left>, Vector<Right>);
template <typename Left, typename Right>
MixedVector<Left, Right> operator&(Vector<Left>, Vector<Right>);
template <typename Left, typename Right>
MixedVector<Left, Right> operator|(Vector<Left>, Vector<Right>);
template <typename Left, typename Right>
MixedVector<Left, Right> operator^(Vector<Left>, Vector<Right>);
template <typename Left, typename Right, typename = MixedVector<Left, Right>>
LaneCondition operator==(Vector<Left>, Vector<Right>);
template <typename Left, typename Right, typename = MixedVector<Left, Right>>
LaneCondition operator!=(Vector<Left>, Vector<Right>);
template <typename Left, typename Right, typename = MixedVector<Left, Right>>
LaneCondition operator<(Vector<Left>, Vector<Right>);
template <typename Left, typename Right, typename = MixedVector<Left, Right>>
LaneCondition operator>=(Vector<Left>, Vector<Right>);

/// A row of the destination register or a local register: read as what it is assigned to.
class RegisterReference {
  public:
    VectorRegister get() const;
    void in_use() const;
    vFloat operator-() const;

    template <typename Element>
    operator Vector<Element>() const;
    template <typename Value>
    vFloat operator=(const Value&) const;
    RegisterReference operator=(const RegisterReference&) const;
};

/// The destination register, row by row.
class DestinationRegister {
  public:
    RegisterReference operator[](int) const;
    void operator++(int) const;
    void operator+=(int) const;
};
inline constexpr DestinationRegister dst_reg;

enum class LRegs { LReg0, LReg1, LReg2, LReg3, LReg4, LReg5, LReg6, LReg7 };
class LocalRegisters {
  public:
    RegisterReference operator[](LRegs) const;
};
inline constexpr LocalRegisters l_reg;

extern const vFloat vConst0, vConst1, vConstNeg1, vConst0p8373;
extern vFloat vConstFloatPrgm0, vConstFloatPrgm1, vConstFloatPrgm2;
extern vInt vConstIntPrgm0, vConstIntPrgm1, vConstIntPrgm2;

/// Modes of instructions, which are combined by |.
enum InstructionMode : int {
    SFPARECIP_MOD1_RECIP,
    SFPENCC_MOD1_EU_R1,
    SFPEXEXP_MOD1_SET_CC_COMP_EXP,
    SFPEXEXP_MOD1_SET_CC_SGN_EXP,
    SFPEXMAN_MOD1_PAD9,
    SFPGT_MOD1_SET_CC,
    SFPGT_MOD1_SET_VD,
    SFPIADD_MOD1_ARG_2SCOMP_LREG_DST,
    SFPIADD_MOD1_ARG_IMM,
    SFPIADD_MOD1_CC_GTE0,
    SFPIADD_MOD1_CC_LT0,
    SFPIADD_MOD1_CC_NONE,
    SFPLOADI_MOD0_FLOATB,
    SFPLOADI_MOD0_LOWER,
    SFPLOADI_MOD0_SHORT,
    SFPLOADI_MOD0_UPPER,
    SFPLOADI_MOD0_USHORT,
    SFPLOAD_ADDR_MODE_NOINC,
    SFPLOAD_MOD0_FMT_SRCB,
    SFPLZ_MOD1_CC_NE0,
    SFPMAD_MOD1_OFFSET_NONE,
    SFPMUL24_MOD1_LOWER,
    SFPMUL24_MOD1_UPPER,
    SFPSETCC_MOD1_LREG_EQ0,
    SFPSETCC_MOD1_LREG_GTE0,
    SFPSETCC_MOD1_LREG_LT0,
    SFPSETCC_MOD1_LREG_NE0,
    SFPSHFT2_MOD1_SHFT_IMM,
    SFPSHFT2_MOD1_SHFT_LREG,
    SFPSTOCHRND_MOD1_FP32_TO_FP16B,
    SFPSTOCHRND_MOD1_FP32_TO_INT16,
    SFPSTOCHRND_MOD1_FP32_TO_INT8,
    SFPSTOCHRND_MOD1_FP32_TO_UINT16,
    SFPSTOCHRND_MOD1_FP32_TO_UINT8,
    SFPSTOCHRND_RND_EVEN,
    SFPSTORE_MOD0_FMT_SRCB,
    SFPSWAP_MOD1_SWAP,
    SFPSWAP_MOD1_VEC_MIN_MAX,
};

enum class RoundMode { NearestEven, Stochastic };

template <typename Result, typename Element>
Result reinterpret(Vector<Element>);

vFloat abs(vFloat);
vInt abs(vInt);
vFloat setsgn(vFloat, int);
vFloat setsgn(vFloat, vFloat);
vFloat setsgn(vFloat, vInt);
vInt setsgn(vInt, int);
vInt setsgn(vInt, vInt);
vFloat setexp(vFloat, vInt);
vFloat setman(vFloat, vInt);
vFloat addexp(vFloat, int);
vInt exexp(vFloat);
vInt exexp_nodebias(vFloat);
vInt exman8(vFloat);
vInt exman9(vFloat);
vUInt shft(vUInt, vInt);
vFloat approx_recip(vFloat);
template <typename Element>
void vec_min_max(Vector<Element>&, Vector<Element>&);

vFloat lut(vFloat, vUInt, vUInt, vUInt, int offset = 0);
vFloat lut2(vFloat, vUInt, vUInt, vUInt, vUInt, vUInt, vUInt, int mode = 0);
vFloat lut2_sign(vFloat, vUInt, vUInt, vUInt, vUInt, vUInt, vUInt, int mode = 0);

vFloat int32_to_float(vInt, RoundMode = RoundMode::Stochastic);
vFloat float_to_fp16a(vFloat, RoundMode = RoundMode::Stochastic);
vFloat float_to_fp16b(vFloat, RoundMode = RoundMode::Stochastic);
vInt float_to_int16(vFloat, RoundMode = RoundMode::Stochastic);
vUInt float_to_uint16(vFloat, RoundMode = RoundMode::Stochastic);

}  // namespace sfpi

sfpi::VectorRegister __builtin_rvtt_sfpload(sfpi::VectorRegister row, int mode, int address_mode);
void __builtin_rvtt_sfpstore(sfpi::VectorRegister value, sfpi::VectorRegister row, int mode,
                             int address_mode);
sfpi::VectorRegister __builtin_rvtt_sfpmad(sfpi::VectorRegister factor, sfpi::VectorRegister other,
                                           sfpi::VectorRegister addend, int mode);
sfpi::VectorRegister __builtin_rvtt_sfpmul24(sfpi::VectorRegister, sfpi::VectorRegister, int mode);
