/** Bounded read of an open file. */
import type { Handle } from "./open-inside.ts";

/**
 * Reads from the start up to a limit or the end. Ignores the reported file size: a file can grow, and /proc reports
 * 0.
 */
export async function readUpTo(handle: Handle, maxBytes: number, size: number = maxBytes): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (let total = 0; total < maxBytes; ) {
    // A byte more than expected, to detect the end of the file with the same read.
    const expectedBytes = total < size ? size - total + 1 : maxBytes;
    const chunk = Buffer.allocUnsafe(Math.min(maxBytes - total, expectedBytes, 64 * 1024));
    const bytesRead = await handle.read(chunk, total);
    if (bytesRead === 0) break;
    chunks.push(chunk.subarray(0, bytesRead));
    total += bytesRead;
    if (size > 0 && total >= size && bytesRead < chunk.length) break;
  }
  return chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks);
}
