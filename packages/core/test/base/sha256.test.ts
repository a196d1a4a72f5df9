/** The incremental hash equals the hash of the platform. */
import { expect, test } from "vitest";
import { createSha256 } from "../../src/base/sha256.ts";

async function hashWithPlatform(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

test("a hash of pieces equals the platform's hash for every length around a block [FX77]", async () => {
  for (let length = 0; length <= 200; length++) {
    const bytes = Uint8Array.from({ length }, (_, index) => (index * 37 + length) % 256);
    for (const cut of [0, 1, length >> 1, length]) {
      const hash = createSha256();
      hash.add(bytes.subarray(0, cut));
      hash.add(bytes.subarray(cut));
      expect(hash.finish(), `${length} bytes, cut at ${cut}`).toBe(await hashWithPlatform(bytes));
    }
  }
});
