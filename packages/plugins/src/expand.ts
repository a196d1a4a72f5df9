/** `${NAME}` in arguments and variables, from our environment. No shell reads them: a value stays one argument, whatever is in it. */
import { StatewrightError } from "@statewright/core";

const reference = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/** The text with every `${NAME}` replaced. Throws `invalid_option` for a variable that is not set; the error holds no value. */
export function expand(text: string, environment: Readonly<Record<string, string | undefined>>, place: string): string {
  return text.replace(reference, (_all, name: string) => {
    const value = environment[name];
    if (value !== undefined) return value;
    throw new StatewrightError("invalid_option", {
      what: `${place} refers to the variable ${name}, which is not set`,
      next: `Set ${name} in the environment, or take \${${name}} out`,
    });
  });
}
