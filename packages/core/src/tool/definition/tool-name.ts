/** Names of tools: what a registry takes, and the name that a foreign tool gets in it. */
import { StatewrightError } from "../../base/errors.ts";
import { fingerprint, isReserved } from "../../base/ids.ts";
import { describeValue } from "../../base/json.ts";

/** Which names a registry takes: snake_case, or all that every provider takes. */
export type ToolNames = "snake_case" | "provider-safe";

const longest = 64;
const snakeCase = /^[a-z][a-z0-9_]{0,63}$/;
const providerSafe = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

const snakeCaseRule = "Use snake_case: a small letter, then up to 63 small letters, digits and underscores";
const providerSafeRule = "Use a letter or an underscore, then up to 63 letters, digits, underscores and hyphens";

/** Tell whether every provider takes a name as it is. */
export function isProviderSafe(name: unknown): name is string {
  return typeof name === "string" && providerSafe.test(name) && !isReserved(name);
}

/** Throws `invalid_tool` for a name that some provider would refuse or would need escaped. */
export function checkToolName(name: unknown): void {
  if (!isProviderSafe(name)) throw refused(name, snakeCaseRule);
}

/** Throws `invalid_tool` for a name that a registry with these names does not take. */
export function checkRegisteredName(name: unknown, names: ToolNames): void {
  if (names === "provider-safe") {
    if (!isProviderSafe(name)) throw refused(name, providerSafeRule);
    return;
  }
  if (isProviderSafe(name) && snakeCase.test(name)) return;
  throw refused(
    name,
    isProviderSafe(name)
      ? `${snakeCaseRule}; or register it with toolRegistry(tools, { names: "provider-safe" })`
      : snakeCaseRule,
  );
}

function refused(name: unknown, rule: string): StatewrightError {
  return new StatewrightError("invalid_tool", { what: `${describeValue(name)} is not a tool name`, next: rule });
}

/**
 * The snake_case name of a tool that comes from elsewhere under a name of its own: `GetWeather` becomes `get_weather`,
 * `files/read` becomes `files_read`. The same name gives the same every time. Throws `invalid_tool` for one that has no
 * letter or digit that could stay.
 */
export function snakeCaseOf(original: string): string {
  if (isProviderSafe(original) && snakeCase.test(original)) return original;
  const words = original
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1_$2")
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "_")
    .replace(/^_+|_+$/g, "");
  if (words === "") throw refused(original, snakeCaseRule);
  const name = /^[a-z]/.test(words) && !isReserved(words) ? words : `tool_${words}`;
  if (name.length <= longest) return name;
  const mark = fingerprint(original);
  return `${name.slice(0, longest - mark.length - 1)}_${mark}`;
}
