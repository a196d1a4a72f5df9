/** Codecs of classes, registered by the application. */
import { StatewrightError } from "../base/errors.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { checkCount } from "../base/options.ts";

/**
 * Codec of a class. `tag` is written into the file and must never change. When the output of `encode` changes,
 * increment `version`; `upgrade` converts the data of an earlier version to the input of the current `decode`.
 */
export interface ClassCodec<Instance = unknown> {
  readonly tag: string;
  /** Integer from 1. Default 1. */
  readonly version?: number;
  /** Converts data that `encode` of version `from` wrote. */
  readonly upgrade?: (data: unknown, from: number) => unknown;
  /** Returns true for the values that this codec encodes. */
  readonly matches: (value: unknown) => value is Instance;
  /** Converts an instance to plain data. */
  encode(value: Instance): unknown;
  /** Creates an instance from the plain data of the current version. */
  readonly decode: (data: unknown) => Instance;
}

/** Tags of the format; forbidden for class codecs. */
export const builtInTags: ReadonlySet<string> = new Set(
  "undefined number bigint date url regexp set map bytes error object bare hole".split(" "),
);

/** Throws `invalid_option` for an invalid version, and for a tag in use. */
export function checkClassCodecs(classes: readonly ClassCodec[]): void {
  const isCodec = (each: unknown): boolean => typeof each === "object" && each !== null && "tag" in each;
  if (!Array.isArray(classes) || !Array.from(classes).every(isCodec))
    throw invalidOption({ where: "createCodec", expected: "a list of class codecs", got: classes });
  const seen = new Set(builtInTags);
  for (const { tag, version = 1, upgrade } of classes) {
    const where = `codec "${tag}"`;
    checkCount(where, { version });
    if (version > 1 && upgrade === undefined)
      throw invalidOption({
        where,
        option: "upgrade",
        expected: `a function from version ${version} on`,
        got: upgrade,
        fix: "Add upgrade: (data, from) => …",
      });
    if (seen.has(tag))
      throw invalidOption({
        where,
        option: "tag",
        expected: "unused",
        found: `the tag "${tag}", which is already in use`,
        fix: "Use a unique tag for each class, different from the built-in types",
      });
    seen.add(tag);
  }
}

export function getVersion({ version = 1 }: ClassCodec): number {
  return version;
}

/** Upgrades data of an earlier version of a class codec. */
export function upgradeData(codec: ClassCodec, data: unknown, from: number): unknown {
  const version = getVersion(codec);
  if (from === version) return data;
  if (from < version && codec.upgrade !== undefined) return codec.upgrade(data, from);
  throw new StatewrightError("store_newer", {
    what: `a saved value of "${codec.tag}" was written by version ${from} of its codec, but the current version is ${version}`,
    next: "Use the code that wrote the value, or a newer version",
  });
}
