/**
 * Incremental SHA-256 (FIPS 180-4): the platform function needs the whole input in memory, which a text of several
 * hundred megabytes exceeds.
 */

/** Hash of all bytes added so far. */
export interface Sha256 {
  /** Adds bytes to the input. */
  add(bytes: Uint8Array): void;
  /** Returns the hash in hexadecimal; nothing may be added afterwards. */
  finish(): string;
}

const blockBytes = 64;

/** Fractional parts of roots of the first primes, as 32 bits. */
const roundConstants: Int32Array = Int32Array.from(listPrimes(64), (prime) => toFraction(Math.cbrt(prime)));
const initialState: Int32Array = Int32Array.from(listPrimes(8), (prime) => toFraction(Math.sqrt(prime)));

/** Creates a hash without input. */
export function createSha256(): Sha256 {
  const state = Int32Array.from(initialState);
  const words = new Int32Array(64);
  const block = new Uint8Array(blockBytes);
  let filled = 0;
  let length = 0;

  const add = (bytes: Uint8Array): void => {
    length += bytes.length;
    let position = 0;
    if (filled > 0) {
      position = Math.min(blockBytes - filled, bytes.length);
      block.set(bytes.subarray(0, position), filled);
      filled += position;
      if (filled < blockBytes) return;
      addBlock(state, words, block, 0);
      filled = 0;
    }
    for (; position + blockBytes <= bytes.length; position += blockBytes) addBlock(state, words, bytes, position);
    block.set(bytes.subarray(position));
    filled = bytes.length - position;
  };

  return {
    add,
    finish: () => {
      const bits = length * 8;
      const end = new Uint8Array((filled < 56 ? blockBytes : 2 * blockBytes) - filled);
      end[0] = 0x80;
      const view = new DataView(end.buffer);
      view.setUint32(end.length - 8, Math.floor(bits / 2 ** 32));
      view.setUint32(end.length - 4, bits >>> 0);
      add(end);
      return [...state].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
    },
  };
}

/** Adds a single block of bytes to the state; `words` is scratch memory. */
function addBlock(state: Int32Array, words: Int32Array, bytes: Uint8Array, offset: number): void {
  for (let index = 0; index < 16; index++) {
    const at = offset + index * 4;
    words[index] =
      (byteAt(bytes, at) << 24) | (byteAt(bytes, at + 1) << 16) | (byteAt(bytes, at + 2) << 8) | byteAt(bytes, at + 3);
  }
  for (let index = 16; index < 64; index++) {
    const before = wordAt(words, index - 15);
    const recent = wordAt(words, index - 2);
    const low = rotate(before, 7) ^ rotate(before, 18) ^ (before >>> 3);
    const high = rotate(recent, 17) ^ rotate(recent, 19) ^ (recent >>> 10);
    words[index] = (wordAt(words, index - 16) + low + wordAt(words, index - 7) + high) | 0;
  }
  // Destructuring would iterate, which takes most of the time.
  let a = wordAt(state, 0);
  let b = wordAt(state, 1);
  let c = wordAt(state, 2);
  let d = wordAt(state, 3);
  let e = wordAt(state, 4);
  let f = wordAt(state, 5);
  let g = wordAt(state, 6);
  let h = wordAt(state, 7);
  for (let index = 0; index < 64; index++) {
    const choice = (e & f) ^ (~e & g);
    const first = (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice) | 0;
    const mixed = (first + wordAt(roundConstants, index) + wordAt(words, index)) | 0;
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const second = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + mixed) | 0;
    d = c;
    c = b;
    b = a;
    a = (mixed + second) | 0;
  }
  addWord(state, 0, a);
  addWord(state, 1, b);
  addWord(state, 2, c);
  addWord(state, 3, d);
  addWord(state, 4, e);
  addWord(state, 5, f);
  addWord(state, 6, g);
  addWord(state, 7, h);
}

function byteAt(bytes: Uint8Array, index: number): number {
  return bytes[index] ?? 0;
}

function wordAt(words: Int32Array, index: number): number {
  return words[index] ?? 0;
}

function addWord(words: Int32Array, index: number, word: number): void {
  words[index] = (wordAt(words, index) + word) | 0;
}

function rotate(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}

function toFraction(root: number): number {
  return ((root - Math.floor(root)) * 2 ** 32) | 0;
}

function listPrimes(count: number): readonly number[] {
  const primes: number[] = [];
  for (let candidate = 2; primes.length < count; candidate++)
    if (primes.every((prime) => candidate % prime !== 0)) primes.push(candidate);
  return primes;
}
