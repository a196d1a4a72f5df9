import { mcpConnector } from "@statewright/mcp";
import { loadTools, type ToolConfigOptions } from "@statewright/plugins";

export const loadConfigured = (file: string, presets: ToolConfigOptions["presets"] = {}) =>
  loadTools(file, { presets, mcp: mcpConnector({ timeoutMs: 30_000 }) });
