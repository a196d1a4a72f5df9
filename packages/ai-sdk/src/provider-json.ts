/** What comes from a provider as plain data that can be saved, and the way back. */
import type { Json, JsonObject } from "@statewright/core";

/** Metadata by provider, as every specification takes it. */
export type ProviderOptions = Record<string, Record<string, Json>>;

/** The key under which the adapter saves what is its own; it is never sent to a provider. */
export const ownKey = "statewright";

/** `value` as JSON without what JSON cannot say, or undefined when nothing of it is left. */
export function plain(value: unknown): Json | undefined {
  if (typeof value === "string" || typeof value === "boolean") return value;
  try {
    const text = JSON.stringify(value);
    return text === undefined ? undefined : (JSON.parse(text) as Json);
  } catch {
    return undefined; // circular, or a bigint: metadata that nobody could have saved
  }
}

/** `value` as a JSON object, or undefined when it is none. */
export function plainObject(value: unknown): JsonObject | undefined {
  const json = plain(value);
  return isObject(json) ? json : undefined;
}

/** Metadata that came later, field by field over what came before, within each provider. */
export function merged(before: JsonObject | undefined, later: unknown): JsonObject | undefined {
  const added = plainObject(later);
  if (added === undefined || before === undefined) return added ?? before;
  const both: Record<string, Json> = { ...before };
  for (const [provider, fields] of Object.entries(added)) {
    const known = both[provider];
    both[provider] = isObject(known) && isObject(fields) ? { ...known, ...fields } : fields;
  }
  return both;
}

/** Saved metadata as the options of a part of a prompt: by provider, without what is the adapter's own. */
export function sentBack(metadata: JsonObject | undefined): { providerOptions?: ProviderOptions } {
  const options: ProviderOptions = {};
  for (const [provider, fields] of Object.entries(metadata ?? {})) {
    if (provider !== ownKey && isObject(fields)) options[provider] = fields;
  }
  return Object.keys(options).length === 0 ? {} : { providerOptions: options };
}

/** Tell whether a JSON value is an object. */
export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The fields that have a value: optional fields of the specifications are absent, not undefined. */
export function present<Fields extends object>(
  fields: Fields,
): { [Key in keyof Fields]?: Exclude<Fields[Key], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}
