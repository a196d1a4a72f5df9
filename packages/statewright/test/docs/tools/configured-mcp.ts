import { writeFileSync } from "node:fs";
import { mcpConnector } from "@statewright/mcp";
import { loadTools } from "@statewright/plugins";

const file = "agent.yaml";
writeFileSync(
  file,
  `tools:
  mcp:
    - name: bookings
      command: ${JSON.stringify(process.execPath)}
      args: [bookings.mjs]
`,
);
const presets = { none: () => [] };

const configured = await loadTools(file, { presets, mcp: mcpConnector({ timeoutMs: 30_000 }) });
for (const { spec } of configured.tools) console.log(spec.name);
await configured.close();
