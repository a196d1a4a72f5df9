/** Conversion of provider data to storable JSON, and back to provider options. */
import type { Json, JsonObject } from "@statewright/core";

/** Metadata by provider, in the shape of every specification. */
export type ProviderOptions = Record<string, Record<string, Json>>;

/** Metadata key of the adapter; never sent to a provider. */
export const adapterKey = "statewright";

/** Returns `value` as JSON without unsupported parts, or undefined if nothing remains. */
export function toJson(value: unknown): Json | undefined {
  if (typeof value === "string" || typeof value === "boolean") return value;
  try {
    const text = JSON.stringify(value);
    return text === undefined ? undefined : (JSON.parse(text) as Json);
  } catch {
    return undefined; // circular value or bigint: not storable metadata
  }
}

/** Returns `value` as a JSON object, otherwise undefined. */
export function toJsonObject(value: unknown): JsonObject | undefined {
  const json = toJson(value);
  return isObject(json) ? json : undefined;
}

/** Merges later metadata into earlier metadata, field by field within each provider. */
export function mergeMetadata(before: JsonObject | undefined, later: unknown): JsonObject | undefined {
  if (later === undefined) return before;
  const added = toJsonObject(later);
  if (added === undefined || before === undefined) return added ?? before;
  const both: Record<string, Json> = { ...before };
  for (const [provider, fields] of Object.entries(added)) {
    const known = both[provider];
    both[provider] = isObject(known) && isObject(fields) ? { ...known, ...fields } : fields;
  }
  return both;
}

/** Returns stored metadata as provider options of a prompt part, without the adapter's own key. */
export function toProviderOptions(metadata: JsonObject | undefined): { providerOptions?: ProviderOptions } {
  let providerOptions: ProviderOptions | undefined;
  for (const provider in metadata) {
    const fields = metadata[provider];
    if (provider !== adapterKey && isObject(fields)) providerOptions = { ...providerOptions, [provider]: fields };
  }
  return providerOptions === undefined ? {} : { providerOptions };
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Removes undefined fields: optional fields of the specifications must be absent, not undefined. */
export function omitUndefined<Fields extends object>(
  fields: Fields,
): { [Key in keyof Fields]?: Exclude<Fields[Key], undefined> } {
  // A loop: this function runs several times in each request.
  const defined: Partial<Fields> = {};
  for (const key in fields) if (fields[key] !== undefined) defined[key] = fields[key];
  return defined as never;
}
