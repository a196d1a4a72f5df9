/** Header `Range` of RFC 9110, for a single range of bytes. */

/** Range of a body. */
export interface BodyRange {
  readonly offset: number;
  readonly bytes: number;
}

/**
 * Returns the range of a body of `size` bytes; undefined for no header, another unit and several ranges, where the
 * answer is the whole body.
 */
export function parseRange(header: string | null, size: number): BodyRange | "unsatisfiable" | undefined {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? "");
  const [, first = "", last = ""] = match ?? [];
  if (match === null || (first === "" && last === "")) return undefined;
  if (first === "") {
    const bytes = Math.min(Number(last), size);
    return bytes === 0 ? "unsatisfiable" : { offset: size - bytes, bytes };
  }
  const offset = Number(first);
  const end = last === "" ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== "" && Number(last) < offset) return undefined;
  return offset >= size ? "unsatisfiable" : { offset, bytes: end - offset + 1 };
}
