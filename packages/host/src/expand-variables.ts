/**
 * Expansion of `${NAME}` in arguments and variables from the environment. Without a shell: a value stays one
 * argument.
 */
import { invalidOption } from "@statewright/core/adapter";

const reference = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/** Replaces every `${NAME}` in a text. Throws `invalid_option` for an unset variable; the error contains no values. */
export function expandVariables(
  text: string,
  environment: Readonly<Record<string, string | undefined>>,
  location: string,
): string {
  return text.replace(reference, (_all, name: string) => {
    const value = environment[name];
    if (value !== undefined) return value;
    throw invalidOption({
      where: location,
      expected: `a value for \${${name}}`,
      found: "an unset environment variable",
      fix: `Set ${name} in the environment, or remove \${${name}}`,
    });
  });
}
