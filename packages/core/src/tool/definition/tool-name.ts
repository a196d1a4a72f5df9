/** Names of tools: rules of a registry, and conversion of foreign names. */
import { StatewrightError } from "../../base/errors.ts";
import { fingerprint, isReserved } from "../../base/ids.ts";
import { describeValue } from "../../base/json.ts";

/** Naming rule of a registry: snake_case only, or any name that every provider accepts. */
export type ToolNames = "snake_case" | "provider-safe";

const maxNameCharacters = 64;
const snakeCase = /^[a-z][a-z0-9_]{0,63}$/;
const providerSafe = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

const snakeCaseRule = "Use snake_case: a lowercase letter, then up to 63 lowercase letters, digits and underscores";
const providerSafeRule = "Use a letter or an underscore, then up to 63 letters, digits, underscores and hyphens";

/**
 * Returns true if every provider accepts the name unchanged. Names of members that each object inherits, such as
 * `toString`, are refused: clients of providers look names up in plain objects.
 */
export function isProviderSafe(name: unknown): name is string {
  return typeof name === "string" && providerSafe.test(name) && !isReserved(name) && !(name in Object.prototype);
}

/** Throws `invalid_tool` for a name that a provider would refuse or escape. */
export function checkToolName(name: unknown): void {
  if (!isProviderSafe(name)) throw createNameError(name, providerSafeRule);
}

/** Throws `invalid_tool` for a name that breaks the naming rule of the registry. */
export function checkRegisteredName(name: unknown, names: ToolNames | undefined): void {
  if (names !== "snake_case") {
    if (!isProviderSafe(name)) throw createNameError(name, providerSafeRule);
    return;
  }
  if (isProviderSafe(name) && snakeCase.test(name)) return;
  throw createNameError(
    name,
    isProviderSafe(name) ? `${snakeCaseRule}; or remove names: "snake_case" from the registry` : snakeCaseRule,
  );
}

function createNameError(name: unknown, rule: string): StatewrightError {
  return new StatewrightError("invalid_tool", { what: `${describeValue(name)} is not a tool name`, next: rule });
}

/**
 * Converts a foreign tool name to snake_case: `GetWeather` becomes `get_weather`, `files/read` becomes `files_read`.
 * Deterministic. Throws `invalid_tool` for a name without a usable letter or digit.
 */
export function toSnakeCase(original: string): string {
  if (isProviderSafe(original) && snakeCase.test(original)) return original;
  const words = original
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1_$2")
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "_")
    .replace(/^_+|_+$/g, "");
  if (words === "") throw createNameError(original, snakeCaseRule);
  const name = /^[a-z]/.test(words) && !isReserved(words) ? words : `tool_${words}`;
  if (name.length <= maxNameCharacters) return name;
  const hash = fingerprint(original);
  return `${name.slice(0, maxNameCharacters - hash.length - 1)}_${hash}`;
}
