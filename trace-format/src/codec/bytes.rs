//! Integers and strings as bytes: little-endian words, varints (seven bits a byte, low bits first), zigzag.

/// Appends a varint of 1 to 10 bytes.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, value: u64) {
    // Most numbers of the block table.
    if value < 0x80 {
        return out.push(value as u8);
    }
    let mut bytes = [0; MAX_VARINT];
    let len = write_varint(&mut bytes, value);
    out.extend_from_slice(&bytes[..len]);
}

/// The most bytes of a varint.
pub const MAX_VARINT: usize = 10;

/// Writes a varint to the start of `out`, which has [`MAX_VARINT`] bytes or more. Returns how many it takes; the bytes
/// after them may change too.
#[inline]
pub fn write_varint(out: &mut [u8], mut value: u64) -> usize {
    if value < 0x80 {
        out[0] = value as u8;
        return 1;
    }
    if value < 1 << 56 {
        // Most others: all eight bytes are worked out at once, and those that count are kept.
        let bytes = (63 - (value | 1).leading_zeros()) / 7 + 1;
        let continued = 0x8080_8080_8080_8080 & !(u64::MAX << (8 * (bytes - 1)));
        out[..8].copy_from_slice(&(groups_of_seven(value) | continued).to_le_bytes());
        return bytes as usize;
    }
    let mut len = 0;
    while value >= 0x80 {
        out[len] = value as u8 | 0x80;
        value >>= 7;
        len += 1;
    }
    out[len] = value as u8;
    len + 1
}

/// The lower 56 bits, seven to a byte.
#[inline]
fn groups_of_seven(value: u64) -> u64 {
    // By halves: 28 bits to each half, 14 to each quarter, 7 to each byte.
    let halves = value & 0x0fff_ffff | (value << 4) & 0x0fff_ffff_0000_0000;
    let quarters = halves & 0x3fff_0000_3fff | (halves << 2) & 0x3fff_0000_3fff_0000;
    quarters & 0x007f_007f_007f_007f | (quarters << 1) & 0x7f00_7f00_7f00_7f00
}

/// The inverse of [`groups_of_seven`]; the highest bit of each byte does not matter.
#[inline]
fn joined_sevens(bytes: u64) -> u64 {
    let sevens = bytes & 0x7f7f_7f7f_7f7f_7f7f;
    let quarters = sevens & 0x007f_007f_007f_007f | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
    let halves = quarters & 0x0000_3fff_0000_3fff | (quarters & 0x3fff_0000_3fff_0000) >> 2;
    halves & 0x0fff_ffff | (halves & 0x0fff_ffff_0000_0000) >> 4
}

/// Maps small numbers of either sign to small numbers: 0, -1, 1, -2 … become 0, 1, 2, 3 …
#[inline]
#[must_use]
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline]
#[must_use]
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Appends the difference between two addresses (modulo 2^64) as a zigzag varint.
#[inline]
pub fn put_delta(out: &mut Vec<u8>, from: u64, to: u64) {
    put_varint(out, zigzag(to.wrapping_sub(from) as i64));
}

/// Appends a length as a varint, then the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A place in a chunk's decompressed payload. Every read is checked against its end; faults say where in the payload.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, position: 0 }
    }

    /// How many bytes have been read.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// How many bytes are left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], String> {
        if len > self.remaining() {
            return Err(format!("payload byte {}: {len} bytes wanted, {} left", self.position, self.remaining()));
        }
        let taken = &self.bytes[self.position..self.position + len];
        self.position += len;
        Ok(taken)
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }

    /// A little-endian word of 4 bytes.
    pub fn word(&mut self) -> Result<u32, String> {
        let b = self.take(4)?;
        Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }

    /// A little-endian word of 8 bytes.
    pub fn long(&mut self) -> Result<u64, String> {
        Ok(u64::from(self.word()?) | u64::from(self.word()?) << 32)
    }

    /// A varint.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, String> {
        // Most are a single byte: neighbouring addresses, small differences.
        if let Some(&byte) = self.bytes.get(self.position).filter(|&&byte| byte < 0x80) {
            self.position += 1;
            return Ok(byte.into());
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64, String> {
        let start = self.position;
        // Most of them: all their bytes are taken at once.
        if let Some(bytes) = self.bytes.get(start..).and_then(<[u8]>::first_chunk) {
            let word = u64::from_le_bytes(*bytes);
            let last = !word & 0x8080_8080_8080_8080;
            if last != 0 {
                self.position += last.trailing_zeros() as usize / 8 + 1;
                // The bits below the mark of the last byte.
                return Ok(joined_sevens(word & (last ^ (last - 1))));
            }
        }
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            // The tenth byte holds the 64th bit and nothing else.
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(format!("payload byte {start}: a number of more than 64 bits"))
    }

    /// A varint that is an u32.
    pub fn varint32(&mut self) -> Result<u32, String> {
        let start = self.position;
        let value = self.varint()?;
        u32::try_from(value).map_err(|_| format!("payload byte {start}: {value} does not fit in 32 bits"))
    }

    /// A zigzag varint.
    pub fn signed(&mut self) -> Result<i64, String> {
        Ok(unzigzag(self.varint()?))
    }

    /// A zigzag varint that is an i32.
    pub fn signed32(&mut self) -> Result<i32, String> {
        let start = self.position;
        let value = self.signed()?;
        i32::try_from(value).map_err(|_| format!("payload byte {start}: {value} does not fit in 32 bits"))
    }

    /// The address that [`put_delta`] wrote, given the one before it.
    #[inline]
    pub fn delta(&mut self, from: u64) -> Result<u64, String> {
        Ok(from.wrapping_add(unzigzag(self.varint()?) as u64))
    }

    /// The number of entries that follow, where each takes `least` bytes or more. A count that cannot be true is
    /// refused before memory is allocated for it.
    pub fn count(&mut self, least: usize) -> Result<usize, String> {
        let start = self.position;
        let count = self.varint()?;
        if count > (self.remaining() / least) as u64 {
            let left = self.remaining();
            return Err(format!("payload byte {start}: {count} entries cannot be in the {left} bytes left"));
        }
        Ok(count as usize)
    }

    /// Bytes with their length before them.
    pub fn bytes(&mut self) -> Result<&'a [u8], String> {
        let len = self.count(1)?;
        self.take(len)
    }

    /// A string with its length before it.
    pub fn string(&mut self) -> Result<String, String> {
        let start = self.position;
        let bytes = self.bytes()?;
        let text = std::str::from_utf8(bytes).map_err(|_| format!("payload byte {start}: a name that is not UTF-8"))?;
        Ok(text.to_owned())
    }

    /// Checks that nothing is left.
    pub fn end(&self) -> Result<(), String> {
        match self.remaining() {
            0 => Ok(()),
            left => Err(format!("payload byte {}: {left} bytes are left over", self.position)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_come_back() {
        let ends = (0..64).flat_map(|bits| [1u64 << bits, (1 << bits) - 1, 0x1234_5678_9abc_def0 >> bits]);
        for value in ends.chain([u64::MAX - 1, u64::MAX]) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), (64 - (value | 1).leading_zeros() as usize).div_ceil(7), "{value:#x}");
            let mut cursor = Cursor::new(&out);
            assert_eq!(cursor.varint(), Ok(value));
            assert_eq!(cursor.end(), Ok(()));
            // Also where other bytes come next.
            let len = out.len();
            out.extend([0xff; 9]);
            let mut cursor = Cursor::new(&out);
            assert_eq!((cursor.varint(), cursor.position()), (Ok(value), len));
            assert_eq!(unzigzag(zigzag(value as i64)), value as i64);
        }
    }

    #[test]
    fn a_varint_of_65_bits_is_refused() {
        let mut long = [0x80; 10];
        long[9] = 2;
        assert!(Cursor::new(&long).varint().unwrap_err().contains("64 bits"));
        assert!(Cursor::new(&[0x80; 11]).varint().unwrap_err().contains("64 bits"));
    }

    #[test]
    fn a_count_beyond_the_payload_is_refused() {
        let mut out = Vec::new();
        put_varint(&mut out, 1 << 40);
        out.extend([0; 12]);
        assert!(Cursor::new(&out).count(4).unwrap_err().contains("12 bytes left"));
    }
}
