//! The form of a file of remembered translations.
//!
//! Magic (8 bytes), version (u32), then varints and bytes: the key (build id of the program, options), the count of
//! modules, and the modules. At the end stands the CRC-32 of all before it. A module is its build id, the count of its
//! heads and the heads, by offset, and the count of the places that synchronisation functions return to, and each as
//! difference to the one before. A head is the difference to the offset before it, a byte (bits 0 to 3: how many bytes
//! are compared, less 1; bit 4: lookups reach it; bit 5: it has a route), a byte (in how many runs it was not run), the
//! checksum (u32), and its route as bytes, if it has one.
//!
//! A *route* is a count of addresses, the length of its turn (one loop iteration; 0 if it is no loop), then the
//! addresses after the first; with a turn, only those of the first one. Each is a number whose bit 0 says whether it
//! lies in another module than the one before. If it does, the rest of the number is that module, and its offset
//! follows; else the rest is the zigzag difference.

use std::collections::{BTreeMap, BTreeSet};

use super::{Head, Key, Module, Place, Remembered};

const MAGIC: [u8; 8] = *b"\x89LSKEPT\n";
/// The form of the file.
const VERSION: u32 = 1;
/// The most addresses of a route.
pub const MAX_ROUTE: usize = 641;
/// The most modules of a program.
const MAX_MODULES: usize = 4096;
/// The most bytes of a build id, or of options.
const MAX_NAME: usize = 4096;

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take_byte(bytes)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    bytes.split_off_first().copied()
}

fn take_bytes<'a>(bytes: &mut &'a [u8], most: usize) -> Option<&'a [u8]> {
    let length = usize::try_from(take(bytes)?).ok().filter(|length| *length <= most)?;
    bytes.split_off(..length)
}

/// Appends a route from `head` on; its first address is that of the head.
pub fn put_route(out: &mut Vec<u8>, head: Place, route: &[Place]) {
    let turn = route.iter().skip(1).position(|place| *place == head).map_or(0, |at| at + 1);
    let is_loop = turn > 0 && (turn..route.len()).all(|at| route[at] == route[at - turn]);
    let turn = if is_loop { turn } else { 0 };
    put(out, route.len() as u64);
    put(out, turn as u64);
    let mut before = head;
    for &place in route.iter().take(if is_loop { turn } else { route.len() }).skip(1) {
        if place.module == before.module {
            let difference = place.offset.wrapping_sub(before.offset).cast_signed();
            put(out, ((difference << 1) ^ (difference >> 63)).cast_unsigned() << 1);
        } else {
            put(out, u64::from(place.module) << 1 | 1);
            put(out, place.offset);
        }
        before = place;
    }
}

/// The route that these bytes encode, for a program with so many modules. None if they are not a route.
pub fn take_route(mut bytes: &[u8], head: Place, modules: usize) -> Option<Vec<Place>> {
    let bytes = &mut bytes;
    let [count, turn] = [usize::try_from(take(bytes)?).ok()?, usize::try_from(take(bytes)?).ok()?];
    if !(2..=MAX_ROUTE).contains(&count) || turn > count {
        return None;
    }
    let mut route = vec![head];
    while route.len() < if turn > 0 { turn } else { count } {
        let number = take(bytes)?;
        let before = *route.last()?;
        route.push(if number & 1 == 0 {
            let number = number >> 1;
            let difference = (number >> 1).cast_signed() ^ -(number & 1).cast_signed();
            Place { offset: before.offset.wrapping_add_signed(difference), ..before }
        } else {
            let module = u32::try_from(number >> 1).ok().filter(|module| (*module as usize) < modules)?;
            Place { module, offset: take(bytes)? }
        });
    }
    while route.len() < count {
        route.push(route[route.len() - turn]);
    }
    bytes.is_empty().then_some(route)
}

/// The file.
pub fn encode(key: &Key, remembered: &Remembered) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&VERSION.to_le_bytes());
    put_bytes(&mut out, &key.program);
    put_bytes(&mut out, key.options.as_bytes());
    put(&mut out, remembered.modules.len() as u64);
    for module in &remembered.modules {
        put_bytes(&mut out, &module.build_id);
        put(&mut out, module.heads.len() as u64);
        let mut before = 0;
        for (&offset, head) in &module.heads {
            put(&mut out, offset - before);
            before = offset;
            let (looked_up, has_route) = (u8::from(head.looked_up), u8::from(!head.route.is_empty()));
            out.push((head.compared - 1) & 15 | looked_up << 4 | has_route << 5);
            out.push(head.unused);
            out.extend_from_slice(&head.checksum.to_le_bytes());
            if !head.route.is_empty() {
                put_bytes(&mut out, &head.route);
            }
        }
        put(&mut out, module.returns.len() as u64);
        let mut before = 0;
        for &offset in &module.returns {
            put(&mut out, offset - before);
            before = offset;
        }
    }
    let sum = crc32fast::hash(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

/// What the file says about the program of this key. None where it is another's, or damaged.
pub fn decode(file: &[u8], key: &Key) -> Option<Remembered> {
    let (mut bytes, sum) = file.split_last_chunk()?;
    if crc32fast::hash(bytes) != u32::from_le_bytes(*sum) {
        return None;
    }
    let bytes = &mut bytes;
    if bytes.split_off(..MAGIC.len())? != MAGIC || bytes.split_off(..4)? != VERSION.to_le_bytes() {
        return None;
    }
    let is_its = take_bytes(bytes, MAX_NAME)? == key.program && take_bytes(bytes, MAX_NAME)? == key.options.as_bytes();
    let count = usize::try_from(take(bytes)?).ok().filter(|count| is_its && *count <= MAX_MODULES)?;
    let modules = (0..count).map(|_| take_module(bytes)).collect::<Option<Vec<Module>>>()?;
    bytes.is_empty().then_some(Remembered { modules, changed: false })
}

fn take_module(bytes: &mut &[u8]) -> Option<Module> {
    let build_id = take_bytes(bytes, MAX_NAME)?.to_vec();
    let count = take(bytes)?;
    let (mut heads, mut offset) = (Vec::new(), 0u64);
    for _ in 0..count {
        offset = offset.checked_add(take(bytes)?)?;
        let (flags, unused) = (take_byte(bytes)?, take_byte(bytes)?);
        let checksum = u32::from_le_bytes(bytes.split_off(..4)?.try_into().ok()?);
        let route = if flags & 32 != 0 { take_bytes(bytes, bytes.len())?.into() } else { Box::default() };
        let (looked_up, compared) = (flags & 16 != 0, (flags & 15) + 1);
        heads.push((offset, Head { looked_up, compared, checksum, route, unused, used: false }));
    }
    let (count, mut returns, mut offset) = (take(bytes)?, Vec::new(), 0u64);
    for _ in 0..count {
        offset = offset.checked_add(take(bytes)?)?;
        returns.push(offset);
    }
    Some(Module { build_id, heads: BTreeMap::from_iter(heads), returns: BTreeSet::from_iter(returns) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(module: u32, offset: u64) -> Place {
        Place { module, offset }
    }

    fn example() -> (Key, Remembered) {
        let mut remembered = Remembered::default();
        let [one, other] = [b"program".as_slice(), b"library"].map(|id| remembered.find_or_add(id));
        let way = [place(one, 100), place(one, 103), place(other, 7), place(other, 3), place(one, 90)];
        let turns: Vec<Place> = way.iter().copied().cycle().take(640).collect();
        remembered.ran(place(one, 100), Head::new(true, b"0123456789abcdef"), &turns);
        remembered.ran(place(one, 7), Head::new(false, b"x"), &way.map(|p| place(p.module, p.offset - 3)));
        remembered.ran(place(other, u64::MAX), Head::new(false, b"xy"), &[]);
        for offset in [5, 300, u64::MAX] {
            remembered.returned(place(other, offset));
        }
        remembered.end_run();
        remembered.changed = false;
        (Key { program: b"program".to_vec(), options: "some".to_owned() }, remembered)
    }

    #[test]
    fn what_is_written_is_read() {
        let (key, remembered) = example();
        let file = encode(&key, &remembered);
        assert_eq!(decode(&file, &key).as_ref(), Some(&remembered));
        assert!(file.len() < 200, "a loop is written once: {} bytes", file.len());
        let route = remembered.route(place(0, 100)).unwrap();
        assert_eq!((route.len(), route[2], route[637]), (640, place(1, 7), place(1, 7)));
    }

    #[test]
    fn a_file_of_another_program_or_of_other_options_is_refused() {
        let (key, remembered) = example();
        let file = encode(&key, &remembered);
        assert_eq!(decode(&file, &Key { program: b"other".to_vec(), ..key.clone() }), None);
        assert_eq!(decode(&file, &Key { options: "others".to_owned(), ..key }), None);
    }

    #[test]
    fn a_wrong_byte_makes_it_miss() {
        let (key, remembered) = example();
        let file = encode(&key, &remembered);
        for at in 0..file.len() {
            for change in [1, 0x80, 0xff] {
                let mut wrong = file.clone();
                wrong[at] ^= change;
                assert_eq!(decode(&wrong, &key), None, "byte {at}");
            }
            assert_eq!(decode(&file[..at], &key), None, "the first {at} bytes");
        }
    }

    #[test]
    fn a_hostile_file_is_refused_or_read_in_its_own_size() {
        // The checksum is right but the bytes are wrong: anyone who writes the file can make such a one.
        let (key, remembered) = example();
        let file = encode(&key, &remembered);
        for at in 0..file.len() - 4 {
            for change in 1..=255 {
                let mut wrong = file[..file.len() - 4].to_vec();
                wrong[at] ^= change;
                let sum = crc32fast::hash(&wrong);
                wrong.extend_from_slice(&sum.to_le_bytes());
                let Some(read) = decode(&wrong, &key) else { continue };
                let held = |module: &Module| module.heads.len() + module.returns.len();
                assert!(read.modules.iter().map(held).sum::<usize>() < file.len());
                for (number, module) in read.modules.iter().enumerate() {
                    for &offset in module.heads.keys() {
                        let route = read.route(place(number as u32, offset)).unwrap_or_default();
                        assert!(route.len() <= MAX_ROUTE && route.iter().all(|place| place.module < 2));
                    }
                }
            }
        }
    }
}
