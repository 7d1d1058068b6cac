import { mount } from 'svelte';
import './app.css';
import App from './App.svelte';
import { runFile } from './file';
import { restoreTheme } from './state/theme.svelte';

restoreTheme();
const target = document.getElementById('app');
if (target) mount(App, { target, props: { file: runFile() } });
