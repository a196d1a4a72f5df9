/** Format of tagged values, shared by encoder and decoder: `{ "$": tag, "v": … }`. */

type ErrorClass = new (message: string, options?: ErrorOptions) => Error;

/** Error classes by name; other errors are restored as `Error`. */
export const errorClasses: ReadonlyMap<string, ErrorClass> = new Map(
  [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((each) => [each.name, each]),
);

type View = new (buffer: ArrayBufferLike) => ArrayBufferView;

/** Views of bytes by name. */
export const views: ReadonlyMap<string, View> = new Map(
  [
    Int8Array,
    Uint8Array,
    Uint8ClampedArray,
    Int16Array,
    Uint16Array,
    Int32Array,
    Uint32Array,
    Float32Array,
    Float64Array,
    BigInt64Array,
    BigUint64Array,
    DataView,
    ...listHalfFloats(),
  ].map((each: View) => [each.name, each]),
);

/** Returns Float16Array where the platform has this type. */
function listHalfFloats(): readonly View[] {
  const { Float16Array } = globalThis as { Float16Array?: View };
  return Float16Array === undefined ? [] : [Float16Array];
}

/** Marker of an array hole: `map` and `forEach` skip a hole, but not `undefined`. */
export const hole = { $: "hole" };

export function defineEntry(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}
