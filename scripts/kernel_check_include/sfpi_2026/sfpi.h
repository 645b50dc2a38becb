// The interface of the vector unit in the vendor's compilers of autumn 2026, as far as device
// headers use it.
//
// The real header comes with the compiler. What is checked with these declarations are the calls of
// the kernel API: within the vector code of the device headers themselves nearly everything passes.
// Nothing is defined, and the numbers of the instruction modes are not those of the hardware.

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

enum class DataLayout {
    Default,
    None,
    F32,
    F16a,
    F16b,
    FSrcB,
    I32,
    SM32,
    SM16,
    SM8,
    M32,
    U32,
    U16,
    U8
};
enum class RoundMode { Nearest, NearestEven, NearestAway, NearestStochastic, Stochastic };
enum class ExponentMode { Unbiased, Biased };
enum class MantissaMode { Plain, ImplicitOne };
enum class ShiftMode { Logical, Arithmetic };
enum class LutMode { Fp8x3, Fp16x6, Fp16x6_HWM3 };
enum class LutSign { Update, Retain };
enum class FractionalHalf { Low, High };

/// What the compiler's intrinsics take and return: the contents of a vector register.
struct VectorRegister {
    template <typename... Values>
    constexpr VectorRegister(Values...) {}
};

/// A value for each lane, of a type that `Element` distinguishes.
template <typename Element>
class Vector {
  public:
    template <typename... Values>
    constexpr Vector(Values...) {}
    constexpr Vector(const Vector&) = default;
    Vector& operator=(const Vector&);
    template <typename Value>
    Vector& operator=(const Value&);
    VectorRegister get() const;

    template <typename Value>
    Vector& operator+=(Value);
    template <typename Value>
    Vector& operator-=(Value);
    template <typename Value>
    Vector& operator*=(Value);
    template <typename Value>
    Vector& operator&=(Value);
    template <typename Value>
    Vector& operator|=(Value);
    template <typename Value>
    Vector& operator^=(Value);
    template <typename Value>
    Vector& operator<<=(Value);
    template <typename Value>
    Vector& operator>>=(Value);
};
using vFloat = Vector<struct vFloatTag>;
using vInt = Vector<struct vIntTag>;
using vUInt = Vector<struct vUIntTag>;
using vMag = Vector<struct vMagTag>;
using vSMag = Vector<struct vSMagTag>;
using vSMag16 = Vector<struct vSMag16Tag>;
using vSMag8 = Vector<struct vSMag8Tag>;
using vUInt8 = Vector<struct vUInt8Tag>;
using vUInt16 = Vector<struct vUInt16Tag>;
using vFloat16a = Vector<struct vFloat16aTag>;
using vFloat16b = Vector<struct vFloat16bTag>;
using vLut8si = Vector<struct vLut8siTag>;
using vLut16ss = Vector<struct vLut16ssTag>;
using vLut16ii = Vector<struct vLut16iiTag>;
using vBool = Vector<struct vBoolTag>;
using sFloat16a = Vector<struct sFloat16aTag>;
using sFloat16b = Vector<struct sFloat16bTag>;
using sLut8si = Vector<struct sLut8siTag>;
using sLut16si = Vector<struct sLut16siTag>;

/// A row of the destination register or a local register: read as what it is assigned to.
class RegisterReference {
  public:
    VectorRegister get() const;
    void in_use() const;
    template <DataLayout layout = DataLayout::Default, typename... Values>
    RegisterReference mode(Values...) const;
    template <typename Value>
    vFloat operator=(const Value&) const;
    RegisterReference operator=(const RegisterReference&) const;
};

template <typename Value>
inline constexpr bool is_lane = false;
template <typename Element>
inline constexpr bool is_lane<Vector<Element>> = true;
template <>
inline constexpr bool is_lane<RegisterReference> = true;

/// What an operation of some values gives: the type of the first vector among them.
template <typename... Values>
struct ResultOf {
    using type = vFloat;
};
template <typename Element>
struct ResultOf<Vector<Element>> {
    using type = Vector<Element>;
};
template <typename First, typename Second, typename... Values>
struct ResultOf<First, Second, Values...> : ResultOf<Second, Values...> {};
template <typename Element, typename Second, typename... Values>
struct ResultOf<Vector<Element>, Second, Values...> {
    using type = Vector<Element>;
};
template <typename... Values>
using Result = typename ResultOf<std::remove_cv_t<std::remove_reference_t<Values>>...>::type;

template <typename Left, typename Right>
using LaneOperands = std::enable_if_t<is_lane<Left> || is_lane<Right>>;

#define SFPI_ARITHMETIC(symbol)                                                    \
    template <typename Left, typename Right, typename = LaneOperands<Left, Right>> \
    Result<Left, Right> operator symbol(const Left&, const Right&);
SFPI_ARITHMETIC(+)
SFPI_ARITHMETIC(-)
SFPI_ARITHMETIC(*)
SFPI_ARITHMETIC(&)
SFPI_ARITHMETIC(|)
SFPI_ARITHMETIC(^)
SFPI_ARITHMETIC(<<)
SFPI_ARITHMETIC(>>)
#undef SFPI_ARITHMETIC

#define SFPI_CONDITION(symbol)                                                     \
    template <typename Left, typename Right, typename = LaneOperands<Left, Right>> \
    vBool operator symbol(const Left&, const Right&);
SFPI_CONDITION(==)
SFPI_CONDITION(!=)
SFPI_CONDITION(<)
SFPI_CONDITION(<=)
SFPI_CONDITION(>)
SFPI_CONDITION(>=)
SFPI_CONDITION(&&)
SFPI_CONDITION(||)
#undef SFPI_CONDITION

template <typename Value, typename = std::enable_if_t<is_lane<Value>>>
Result<Value> operator-(const Value&);
template <typename Value, typename = std::enable_if_t<is_lane<Value>>>
Result<Value> operator~(const Value&);
template <typename Value, typename = std::enable_if_t<is_lane<Value>>>
vBool operator!(const Value&);

template <typename Condition>
void enable_lanes(const Condition&);

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
extern const vInt vConstTileId;

/// Modes of instructions, which are combined by |.
enum InstructionMode : int {
    CREG_IDX_0P837300003,
    CREG_IDX_LUT_SLOPES,
    CREG_IDX_TILEID,
    SFPABS_MOD1_INT,
    SFPARECIP_MOD1_RECIP,
    SFPCAST_MOD1_INT32_TO_FP32_RNE,
    SFPCAST_MOD1_SM32_TO_FP32_RNE,
    SFPCONFIG_SRC_RAND,
    SFPENCC_IMM12_BOTH,
    SFPENCC_MOD1_EI_RI,
    SFPENCC_MOD1_EU_R1,
    SFPEXEXP_MOD1_SET_CC_COMP_EXP,
    SFPEXEXP_MOD1_SET_CC_SGN_EXP,
    SFPEXMAN_MOD1_PAD9,
    SFPGT_MOD1_SET_CC,
    SFPGT_MOD1_SET_VD,
    SFPIADD_MOD1_ARG_2SCOMP_LREG_DST,
    SFPIADD_MOD1_ARG_IMM,
    SFPIADD_MOD1_ARG_LREG_DST,
    SFPIADD_MOD1_CC_GTE0,
    SFPIADD_MOD1_CC_LT0,
    SFPIADD_MOD1_CC_NONE,
    SFPLOADI_MOD0_FLOATA,
    SFPLOADI_MOD0_FLOATB,
    SFPLOADI_MOD0_LOWER,
    SFPLOADI_MOD0_SHORT,
    SFPLOADI_MOD0_UPPER,
    SFPLOADI_MOD0_USHORT,
    SFPLOAD_ADDR_MODE_NOINC,
    SFPLOAD_MOD0_FMT_FP16B,
    SFPLOAD_MOD0_FMT_SRCB,
    SFPLZ_MOD1_CC_NE0,
    SFPLZ_MOD1_CC_NONE,
    SFPMAD_MOD1_OFFSET_NONE,
    SFPMOV_MOD1_CONFIG,
    SFPMUL24_MOD1_LOWER,
    SFPMUL24_MOD1_UPPER,
    SFPSETCC_MOD1_LREG_EQ0,
    SFPSETCC_MOD1_LREG_GTE0,
    SFPSETCC_MOD1_LREG_LT0,
    SFPSETCC_MOD1_LREG_NE0,
    SFPSHFT2_MOD1_SHFT_IMM,
    SFPSHFT2_MOD1_SHFT_LREG,
    SFPSHFT2_MOD1_SUBVEC_SHFLROR1,
    SFPSHFT2_MOD1_SUBVEC_SHFLSHR1,
    SFPSTOCHRND_MOD1_FP32_TO_FP16B,
    SFPSTOCHRND_MOD1_FP32_TO_INT16,
    SFPSTOCHRND_MOD1_FP32_TO_INT8,
    SFPSTOCHRND_MOD1_FP32_TO_UINT16,
    SFPSTOCHRND_MOD1_FP32_TO_UINT8,
    SFPSTOCHRND_RND_EVEN,
    SFPSTORE_MOD0_FMT_FP16B,
    SFPSTORE_MOD0_FMT_SRCB,
    SFPSWAP_MOD1_SWAP,
    SFPSWAP_MOD1_VEC_MIN_MAX,
    SFP_DESTREG_STRIDE,
    SFP_SRCSREG_STRIDE,
};

template <typename Value>
struct Ordered {
    Value min, max;
};
template <typename... Values>
Ordered<Result<Values...>> min_max(Values&&...);

template <typename To, typename... Values>
To as(const Values&...);
template <typename To, typename... Values>
To reinterpret(const Values&...);
template <typename To, auto... modes, typename... Values>
To convert(const Values&...);

/// Functions of one type: the result has that of the first vector.
#define SFPI_FUNCTION(name)                      \
    template <auto... modes, typename... Values> \
    Result<Values...> name(Values&&...);
SFPI_FUNCTION(abs)
SFPI_FUNCTION(copysgn)
SFPI_FUNCTION(setexp)
SFPI_FUNCTION(setsgn)
SFPI_FUNCTION(setsgn2)
SFPI_FUNCTION(setman)
SFPI_FUNCTION(min)
SFPI_FUNCTION(max)
SFPI_FUNCTION(clamp)
SFPI_FUNCTION(symmetric_clamp)
SFPI_FUNCTION(addexp)
SFPI_FUNCTION(shft)
SFPI_FUNCTION(approx_recip)
SFPI_FUNCTION(approx_sqrt)
SFPI_FUNCTION(approx_exp)
SFPI_FUNCTION(fractional_mul)
SFPI_FUNCTION(nearby)
SFPI_FUNCTION(round)
SFPI_FUNCTION(rectified_linear_unit)
SFPI_FUNCTION(subvec_shflror1)
SFPI_FUNCTION(copyman)
#undef SFPI_FUNCTION

#define SFPI_FUNCTION(result, name)              \
    template <auto... modes, typename... Values> \
    result name(Values&&...);
SFPI_FUNCTION(vInt, exexp)
SFPI_FUNCTION(vInt, exexp_nodebias)
SFPI_FUNCTION(vInt, exman8)
SFPI_FUNCTION(vInt, exman9)
SFPI_FUNCTION(vMag, exman)
SFPI_FUNCTION(vFloat, lut)
SFPI_FUNCTION(vFloat, lut2)
SFPI_FUNCTION(vFloat, lut2_sign)
SFPI_FUNCTION(vFloat, int32_to_float)
SFPI_FUNCTION(vBool, is_inf)
SFPI_FUNCTION(vBool, is_nan)
SFPI_FUNCTION(vBool, is_finite)
SFPI_FUNCTION(vBool, is_pos)
SFPI_FUNCTION(vBool, is_neg)
SFPI_FUNCTION(vInt, int32_to_uint8)
SFPI_FUNCTION(vInt, int32_to_int8)
SFPI_FUNCTION(vInt, float_to_int16)
SFPI_FUNCTION(vUInt, float_to_uint16)
SFPI_FUNCTION(vUInt, float_to_fp16a)
SFPI_FUNCTION(vUInt, float_to_fp16b)
SFPI_FUNCTION(void, vec_min_max)
SFPI_FUNCTION(void, subvec_transp)
SFPI_FUNCTION(void, lut_init)
#undef SFPI_FUNCTION

/// While one lives, the compiler is to use few registers.
struct lreg_pressure {
    lreg_pressure();
    ~lreg_pressure();
};

}  // namespace sfpi

template <typename... Values>
sfpi::VectorRegister __builtin_rvtt_sfpload(Values...);
template <typename... Values>
void __builtin_rvtt_sfpstore(Values...);
template <typename... Values>
sfpi::VectorRegister __builtin_rvtt_sfpmad(Values...);
template <typename... Values>
sfpi::VectorRegister __builtin_rvtt_sfpmul24(Values...);
template <typename... Values>
sfpi::VectorRegister __builtin_rvtt_sfpgt(Values...);
template <typename... Values>
void __builtin_rvtt_ttreplay(Values...);
