//! Addresses of a warp's lanes, as the format has them.
//!
//! Worked example: lanes 0 to 2 access 0x1000, 0x1008 and 0x1010: mode 1, the first and the stride, `1 0x1000 8`.
//! Lanes 0 and 2 alone are not side by side: mode 2, the first and the differences, `2 0x1000 16`.

use std::fmt::Write;

/// Adds the mode and the addresses of the lanes of this mask, in the order of lanes; there is at least one.
pub(super) fn put(line: &mut String, mask: u32, addresses: &[u64]) {
    let first = addresses[0];
    let difference = |two: &[u64]| two[1].wrapping_sub(two[0]).cast_signed();
    let stride = addresses.get(..2).map_or(0, difference);
    // In lanes side by side the mask without its zeros is one less than a power of two.
    let packed = mask >> mask.trailing_zeros();
    let is_side_by_side = packed & packed.wrapping_add(1) == 0;
    let is_even = i32::try_from(stride).is_ok() && addresses.windows(2).all(|two| difference(two) == stride);
    // Writing to a string cannot fail.
    if is_side_by_side && is_even {
        let _ = write!(line, "1 0x{first:x} {stride} ");
    } else {
        let _ = write!(line, "2 0x{first:x} ");
        for two in addresses.windows(2) {
            let _ = write!(line, "{} ", difference(two));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(mask: u32, addresses: &[u64]) -> String {
        let mut line = String::new();
        put(&mut line, mask, addresses);
        line
    }

    #[test]
    fn strides_are_for_lanes_side_by_side() {
        assert_eq!(shown(0b111, &[0x1000, 0x1008, 0x1010]), "1 0x1000 8 ");
        assert_eq!(shown(u32::MAX, &[0x10; 32]), "1 0x10 0 ");
        assert_eq!(shown(0b110_0000, &[0x1010, 0x1000]), "1 0x1010 -16 ");
        assert_eq!(shown(0b101, &[0x1000, 0x1010]), "2 0x1000 16 ");
        assert_eq!(shown(0b111, &[0x1000, 0x1010, 0x1018]), "2 0x1000 16 8 ");
        assert_eq!(shown(0b11, &[0, 1 << 40]), "2 0x0 1099511627776 ");
        assert_eq!(shown(0b1000, &[0xfff8]), "1 0xfff8 0 ");
    }
}
