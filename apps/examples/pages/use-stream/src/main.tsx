import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";
import "../../chat/src/style.css";
import "./branches.css";

const root = document.getElementById("root");
if (root === null) throw new Error("main: expected an element #root. Add it to index.html.");
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
