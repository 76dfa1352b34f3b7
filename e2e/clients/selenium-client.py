# Drives the browser at a DevTools port with Selenium, and prints the page's title and the number
# of tabs.
#
#   selenium-client.py HOST:PORT URL
import sys

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

options = webdriver.ChromeOptions()
options.debugger_address = sys.argv[1]
driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
try:
    driver.get(sys.argv[2])
    driver.find_element(By.ID, "name").send_keys("ada")
    driver.find_element(By.TAG_NAME, "button").click()
    print(driver.title)
    driver.switch_to.new_window("tab")
    print(len(driver.window_handles))
    driver.close()
finally:
    driver.quit()  # ends chromedriver; the browser is the session's and stays
