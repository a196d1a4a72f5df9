/** Formats client warnings: the specifications have several warning shapes, and later versions may add more. */
import type { Json } from "@statewright/core";
import { isObject } from "./provider-json.ts";

/** Returns a stored client warning as a sentence. */
export function formatWarning(warning: Json): string {
  if (!isObject(warning)) return typeof warning === "string" ? warning : JSON.stringify(warning);
  const { type, feature, setting, tool, message, details } = warning;
  const detail = typeof message === "string" ? message : typeof details === "string" ? details : undefined;
  const subject = [feature, setting, isObject(tool) ? tool["name"] : undefined].find(
    (name) => typeof name === "string",
  );
  if (subject === undefined) return detail ?? JSON.stringify(warning);
  return `${subject} is ${verdicts[String(type)] ?? String(type)}${detail === undefined ? "" : `: ${detail}`}`;
}

const verdicts: Readonly<Record<string, string>> = {
  unsupported: "not supported",
  "unsupported-setting": "not supported",
  "unsupported-tool": "not supported",
  compatibility: "partly supported",
  deprecated: "deprecated",
};
