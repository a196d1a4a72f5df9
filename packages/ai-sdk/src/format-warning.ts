/** What a client warns of, as a sentence: the specifications spell it in several ways, and later ones may add to them. */
import type { Json } from "@statewright/core";
import { isObject } from "./provider-json.ts";

/** A warning of a client, as it was saved, in words. */
export function warningText(warning: Json): string {
  if (!isObject(warning)) return typeof warning === "string" ? warning : JSON.stringify(warning);
  const { type, feature, setting, tool, message, details } = warning;
  const said = typeof message === "string" ? message : typeof details === "string" ? details : undefined;
  const about = [feature, setting, isObject(tool) ? tool["name"] : undefined].find((name) => typeof name === "string");
  if (about === undefined) return said ?? JSON.stringify(warning);
  return `${about} is ${verdicts[String(type)] ?? String(type)}${said === undefined ? "" : `: ${said}`}`;
}

const verdicts: Readonly<Record<string, string>> = {
  unsupported: "not supported",
  "unsupported-setting": "not supported",
  "unsupported-tool": "not supported",
  compatibility: "supported in part",
  deprecated: "deprecated",
};
